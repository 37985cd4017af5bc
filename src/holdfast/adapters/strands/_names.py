"""The threads of sessions, agents and keys; escaping keeps names different."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

SESSION = "strands-session"
AGENT = "strands-agent"
MULTI_AGENT = "strands-multi-agent"
STORAGE = "strands-storage"
HISTORY = "strands-history"

_IMMUTABLE = re.compile(
    r"(?P<folder>(?:.*/)?immutable_history)/snapshot_(?P<id>[0-9a-f-]{36})\.json",
    re.DOTALL,
)


def session_name(session_id: str) -> str:
    return f"{SESSION}:{quote(session_id, safe='')}"


def agent_name(session_id: str, agent_id: str) -> str:
    return f"{session_name(session_id)}/agents/{quote(agent_id, safe='')}"


def multi_agent_name(session_id: str, id_: str) -> str:
    return f"{session_name(session_id)}/multi_agents/{quote(id_, safe='')}"


class KeyPlace(NamedTuple):
    """The place of a key's bytes: the head of a thread, or a label in it."""

    thread: str
    label: str | None = None

    @classmethod
    def of(cls, key: str) -> KeyPlace:
        found = _IMMUTABLE.fullmatch(key)
        if found is None:
            return cls(f"{STORAGE}:{quote(key)}")
        return cls(f"{HISTORY}:{quote(found['folder'])}", found["id"])

    @property
    def kind(self) -> str:
        return STORAGE if self.label is None else HISTORY


def key_of(thread: str, label: str | None = None) -> str:
    """The key of a thread, or of a checkpoint with a label."""
    key = unquote(thread.partition(":")[2])
    return key if label is None else f"{key}/snapshot_{label}.json"


def prefixes(query: str) -> tuple[str, str]:
    """The prefixes of threads for keys with a prefix: of keys, and of folders."""
    return f"{STORAGE}:{quote(query)}", f"{HISTORY}:{quote(query)}"


def history_names(query: str) -> list[str]:
    """The threads of the snapshots below a prefix, if it is inside of such a folder."""
    folder, slash, _ = query.rpartition("/")
    is_history = slash and folder.rpartition("/")[2] == "immutable_history"
    return [f"{HISTORY}:{quote(folder)}"] if is_history else []
