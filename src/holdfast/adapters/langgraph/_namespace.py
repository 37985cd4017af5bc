"""The Holdfast threads of a LangGraph thread and its namespaces, and their names.

A LangGraph thread is a Holdfast thread of the same name. The namespace of a subgraph is
a thread named ``<thread>#<namespace>``.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any
from uuid import UUID

import msgspec
from langchain_core.runnables import RunnableConfig

from holdfast.backends import Start, ThreadRecord
from holdfast.operations.graphs import (
    FRAME,
    KIND,
    SUBGRAPH,
    escaped,
    fitting,
    subgraph_name,
    unescaped,
)
from holdfast.operations.values import encode_metadata

_LONGEST_THREAD = 300
# From 1582, where the time in a UUID begins, to 1970, in units of 100 ns.
_GREGORIAN = 0x01B21DD213814000


class Namespace(msgspec.Struct, frozen=True):
    """A namespace of a LangGraph thread; ``""`` is the thread's own graph."""

    thread: str
    ns: str = ""

    @property
    def root(self) -> str:
        """The name of the Holdfast thread of the thread's own graph."""
        return fitting(escaped(self.thread) or "%", _LONGEST_THREAD)

    @property
    def name(self) -> str:
        """The name of the Holdfast thread of this namespace."""
        return subgraph_name(self.root, self.ns) if self.ns else self.root

    @property
    def below(self) -> str:
        """The prefix of the names of all namespaces of subgraphs."""
        return f"{self.root}{SUBGRAPH}"

    def start(self, *, anew: bool = False) -> Start:
        """The options to create the Holdfast thread; ``anew`` if it was deleted."""
        about = {"thread_id": self.thread, "checkpoint_ns": self.ns}
        return Start(kind=KIND, metadata=encode_metadata(about), anew=anew)

    def config(self, checkpoint: str) -> RunnableConfig:
        """The config by which LangGraph names a checkpoint of this namespace."""
        return {
            "configurable": {
                "thread_id": self.thread,
                "checkpoint_ns": self.ns,
                "checkpoint_id": checkpoint,
            }
        }


def given(config: RunnableConfig | None) -> Mapping[str, Any]:
    """The part of a config that names thread, namespace and checkpoint."""
    return (config or {}).get("configurable", {})


def namespace_of(config: RunnableConfig) -> Namespace:
    """The namespace a config names."""
    found = given(config)
    return Namespace(str(found["thread_id"]), str(found.get("checkpoint_ns") or ""))


def root_of(config: RunnableConfig) -> Namespace:
    """The namespace of the outermost graph of a config's thread."""
    return Namespace(str(given(config)["thread_id"]))


def id_in(config: RunnableConfig | None) -> str | None:
    """The checkpoint a config names, if it names one."""
    return given(config).get("checkpoint_id") or None


def namespace_in(thread: ThreadRecord) -> Namespace:
    """The namespace of a Holdfast thread.

    The metadata of the thread name it. A fork has the metadata of its origin instead.
    """
    about = thread.metadata
    found = Namespace(str(about["thread_id"]), str(about["checkpoint_ns"]))
    if found.name == thread.id:
        return found
    root, _, ns = thread.id.partition(SUBGRAPH)
    return Namespace(unescaped(root), unescaped(ns))


def digest(*parts: object) -> str:
    """A short text that replaces others in a key."""
    text = "\n".join(str(part) for part in parts)
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def channel_name(channel: str) -> str:
    """The name of a channel's value in a state."""
    return f"{channel}_" if channel.startswith(FRAME) else channel


def channel_of(name: str) -> str:
    """The channel of a value in a state, by the value's name."""
    return name.removesuffix("_") if name.startswith(FRAME) else name


def made_at(checkpoint: str) -> int | None:
    """The time when LangGraph made an id, microseconds UTC of that program."""
    try:
        id_ = UUID(checkpoint)
    except ValueError:
        return None
    if id_.version != 6:  # noqa: PLR2004 - LangGraph's ids
        return None
    ticks = (id_.int >> 80) << 12 | (id_.int >> 64) & 0xFFF
    return (ticks - _GREGORIAN) // 10
