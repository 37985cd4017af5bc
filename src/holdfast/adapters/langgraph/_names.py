"""Where a LangGraph thread and its namespaces are in a store, and what is in them.

A thread is a thread of the same name; the namespace of a subgraph is a thread whose
name begins with that of its thread and ``#``. What a name cannot hold is written as
``%`` and hexadecimal digits, and what is too long ends in a digest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import unquote_to_bytes
from uuid import UUID

import msgspec
from langchain_core.runnables import RunnableConfig

from holdfast._port import Start
from holdfast._values.records import LONGEST_NAME, encode_metadata

KIND = "langgraph"
# The value of a state that is not a channel: what else there is of a checkpoint.
FRAME = "__checkpoint__"

_DIGEST = 32
_LONGEST_THREAD = 300
_UNFIT = re.compile(r"[\x00#%\ud800-\udfff]")
# 100 ns between 1582 and 1970, which is what the time in a UUID counts from.
_GREGORIAN = 0x01B21DD213814000


class Place(msgspec.Struct, frozen=True):
    """A namespace of a thread."""

    thread: str
    ns: str = ""

    @property
    def root(self) -> str:
        """The name of the thread itself."""
        return _fitting(escaped(self.thread) or "%", _LONGEST_THREAD)

    @property
    def name(self) -> str:
        """The name of the Holdfast thread."""
        if not self.ns:
            return self.root
        return _fitting(f"{self.root}#{escaped(self.ns)}", LONGEST_NAME)

    @property
    def below(self) -> str:
        """What the names of all namespaces of subgraphs begin with."""
        return f"{self.root}#"

    def start(self, *, anew: bool = False) -> Start:
        """How the Holdfast thread begins."""
        about = {"thread_id": self.thread, "checkpoint_ns": self.ns}
        return Start(kind=KIND, metadata=encode_metadata(about), anew=anew)

    def config(self, checkpoint: str) -> RunnableConfig:
        """How LangGraph names a checkpoint in this place."""
        return {
            "configurable": {
                "thread_id": self.thread,
                "checkpoint_ns": self.ns,
                "checkpoint_id": checkpoint,
            }
        }


def given(config: RunnableConfig | None) -> Mapping[str, Any]:
    """What a config says of where to look."""
    return (config or {}).get("configurable", {})


def place_of(config: RunnableConfig) -> Place:
    """The place a config names."""
    found = given(config)
    return Place(str(found["thread_id"]), str(found.get("checkpoint_ns") or ""))


def id_in(config: RunnableConfig | None) -> str | None:
    """The checkpoint a config names, if it names one."""
    return given(config).get("checkpoint_id") or None


def place_in(metadata: Mapping[str, Any]) -> Place:
    """The place that a Holdfast thread was begun for."""
    return Place(str(metadata["thread_id"]), str(metadata["checkpoint_ns"]))


def escaped(text: str) -> str:
    """Text that can stand in a name before ``#``; no two texts become the same."""
    return _UNFIT.sub(lambda found: _hexadecimal(found[0]), text)


def unescaped(text: str) -> str:
    """The text that was `escaped`."""
    return unquote_to_bytes(text).decode("utf-8", "surrogatepass")


def _hexadecimal(character: str) -> str:
    return "".join(f"%{b:02x}" for b in character.encode("utf-8", "surrogatepass"))


def _fitting(name: str, longest: int) -> str:
    data = name.encode()
    if len(data) <= longest:
        return name
    kept = data[: longest - _DIGEST - 2].decode(errors="ignore")
    # An escaped text has hexadecimal digits behind every %.
    return f"{kept}%~{sha256(data).hexdigest()[:_DIGEST]}"


def channel_name(channel: str) -> str:
    """The name of a channel's value in a state."""
    return f"{channel}_" if channel.startswith(FRAME) else channel


def channel_of(name: str) -> str:
    """The channel whose value has a name."""
    return name.removesuffix("_") if name.startswith(FRAME) else name


def made_at(checkpoint: str) -> int | None:
    """When LangGraph made an id, microseconds UTC by the clock of whoever did."""
    try:
        id_ = UUID(checkpoint)
    except ValueError:
        return None
    if id_.version != 6:  # noqa: PLR2004 - LangGraph's ids
        return None
    ticks = (id_.int >> 80) << 12 | (id_.int >> 64) & 0xFFF
    return (ticks - _GREGORIAN) // 10
