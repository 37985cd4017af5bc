"""The stored form of LangGraph's threads, for readers without LangGraph."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Any, Final, cast

import msgspec

from holdfast._messages.loose import fields_of
from holdfast._values.records import LONGEST_NAME

# The kind of the threads.
KIND: Final = "langgraph"
# The value of a state that is not a channel: the rest of a LangGraph checkpoint.
FRAME: Final = "__checkpoint__"
# The id of LangGraph's parent, stored only if it is not the parent in the store. It is
# a value of its own, so that finding the line of a checkpoint reads no frames.
PARENT: Final = "__checkpoint__parent"
# The value in the state of an item that holds its vectors, by path.
VECTORS: Final = "__vectors__"

# Between the index of the first write of a task and its id, in the key of an entry.
SEPARATOR: Final = " "
_KEY = re.compile(rf"(-?\d+){SEPARATOR}(.*)", re.DOTALL)
# The parts of a write.
_WRITE = 2

# Between the name of a thread and the namespace of one of its subgraphs.
SUBGRAPH: Final = "#"
_DIGEST = 32
_UNFIT = re.compile(r"[\x00\x1f#%\ud800-\udfff]")


class TaskEntry(msgspec.Struct, frozen=True):
    """Writes of a task, from an entry in the journal of the checkpoint it worked on.

    ``index`` is that of the first write, ``task`` the escaped id of the task. Writes
    that are in another entry are ``None``.
    """

    index: int
    task: str
    path: str
    writes: list[tuple[str, Any] | None]


def task_entry(key: str, value: object) -> TaskEntry | None:
    """An entry of a checkpoint, ``None`` if it is not LangGraph's but a caller's."""
    named, fields = _KEY.fullmatch(key), fields_of(value)
    if named is None or "writes" not in fields:
        return None
    writes = [*map(_write, _parts(fields["writes"]))]
    return TaskEntry(int(named[1]), named[2], str(fields.get("path", "")), writes)


def _write(value: object) -> tuple[str, Any] | None:
    """A channel and its value."""
    parts = _parts(value)
    return (str(parts[0]), parts[1]) if len(parts) == _WRITE else None


def _parts(value: object) -> list[object]:
    # Unlike `parts_of` without a copy: a load can have hundreds of writes.
    return cast("list[object]", value) if isinstance(value, list) else []


# --- names ----------------------------------------------------------------------------


def subgraph_name(thread: str, namespace: str) -> str:
    """The name of the thread of a subgraph."""
    return fitting(f"{thread}{SUBGRAPH}{escaped(namespace)}", LONGEST_NAME)


def escaped(text: str) -> str:
    """Text without ``#`` for a name; different texts stay different.

    Characters that a name cannot hold are written as ``%`` and hexadecimal digits.
    """
    return _UNFIT.sub(lambda found: _hexadecimal(found[0]), text)


def unescaped(text: str) -> str:
    """The text that was passed to `escaped`."""
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 - loads ipaddress

    return unquote_to_bytes(text).decode("utf-8", "surrogatepass")


def is_escaped(name: str) -> bool:
    """True if `escaped` can give this name, so that a graph can have it."""
    try:
        return escaped(unescaped(name)) == name
    except UnicodeDecodeError:
        return False


def _hexadecimal(character: str) -> str:
    return "".join(f"%{b:02x}" for b in character.encode("utf-8", "surrogatepass"))


def fitting(name: str, longest: int) -> str:
    """The name; one that is too long ends in a digest."""
    data = name.encode()
    if len(data) <= longest:
        return name

    kept = data[: longest - _DIGEST - 2].decode(errors="ignore")
    # In an escaped text % is followed by hexadecimal digits, never by ~.
    return f"{kept}%~{sha256(data).hexdigest()[:_DIGEST]}"
