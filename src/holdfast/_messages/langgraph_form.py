"""How the adapter for LangGraph stores threads, for readers without LangGraph."""

from __future__ import annotations

import re
from typing import Any, Final, cast

import msgspec

from holdfast._messages.transcript import fields_of

# The kind of the threads.
KIND: Final = "langgraph"
# The value of a state that is not a channel: the rest of a LangGraph checkpoint.
FRAME: Final = "__checkpoint__"
# The id of LangGraph's parent, only where that is not the parent in the store. A value
# of its own, so that the line of a checkpoint is found without reading frames.
PARENT: Final = "__checkpoint__parent"

# Between the index of the first write of a task and its id, in the key of an entry.
SEPARATOR: Final = " "
_KEY = re.compile(rf"(-?\d+){SEPARATOR}(.*)", re.DOTALL)
# The parts of a write.
_WRITE = 2


class TaskEntry(msgspec.Struct, frozen=True):
    """Writes of a task, from an entry in the journal of the checkpoint it worked on.

    ``index`` is that of the first write, ``task`` the escaped id of the task. Writes
    that another entry has are ``None``.
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
