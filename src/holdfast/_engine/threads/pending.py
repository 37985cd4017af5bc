"""What a recorder got after the last checkpoint, durable in the journal.

Each part has the id that the next checkpoint will get. Once a checkpoint with this id
exists, the part is obsolete; the save that makes it removes the part as well.
"""

from __future__ import annotations

from typing import Any, Final, cast

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads.journal import OF_THREAD
from holdfast._messages.transcript import fields_of
from holdfast._port import CheckpointKey, Entries, Start, Write
from holdfast._values import codec
from holdfast._values.records import UNSET, Checkpoint, Entry, ThreadRecord
from holdfast.errors import Conflict

PENDING: Final = "pending:"
_NO_HEAD: Final = "-"
_FIELDS: Final = frozenset({"at", "messages", "run", "next"})


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that take the place of those from ``at`` on, and the run beside them.

    ``next_id`` is the id of the checkpoint that will have them.
    """

    at: int
    messages: list[dict[str, Any]]
    run: dict[str, Any]
    next_id: str


class Pending(msgspec.Struct, frozen=True):
    """What was recorded after a head, and what another writer has passed over.

    ``keys`` are those of all parts in the journal, ``obsolete`` of those that the next
    write should remove.
    """

    parts: tuple[Part, ...] = ()
    passed_over: tuple[dict[str, Any], ...] = ()
    keys: tuple[str, ...] = ()
    obsolete: tuple[str, ...] = ()


def prefix_of(head: Checkpoint | None) -> str:
    """The beginning of the keys of what is recorded after a head."""
    return f"{PENDING}{head.id if head else _NO_HEAD}:"


async def find_pending(context: Context, record: ThreadRecord) -> Pending:
    """What recorders of a thread got and no checkpoint has yet."""
    entries = await context.backend.scan(
        Entries(thread=record.id, checkpoint=OF_THREAD, prefix=PENDING)
    )
    parts: list[Part] = []
    lost: list[dict[str, Any]] = []
    keys: list[str] = []
    obsolete: list[str] = []
    saved: dict[str, bool] = {}
    for entry in entries:
        part = _part(entry)
        if part is None:
            continue
        if part.next_id not in saved:
            saved[part.next_id] = await _is_saved(context, record, part.next_id)
        is_next = entry.key.startswith(prefix_of(record.head))
        # Parts of a recorder that did not notice that others were discarded have
        # another id, and are not mixed with the first ones.
        is_next &= not parts or part.next_id == parts[0].next_id
        if is_next and not saved[part.next_id]:
            parts.append(part)
            keys.append(entry.key)
            continue
        obsolete.append(entry.key)
        lost += [] if saved[part.next_id] else part.messages
    return Pending(tuple(parts), tuple(lost), tuple(keys), tuple(obsolete))


def unsaved_messages(pending: Pending) -> tuple[int, list[dict[str, Any]]]:
    """The messages that no checkpoint has yet, and the position of the first.

    They stand after the messages of the head, or in the place of the last of them.
    """
    first = min((part.at for part in pending.parts), default=0)
    found: list[dict[str, Any]] = []
    for part in pending.parts:
        found[part.at - first :] = part.messages
    return first, found


async def next_ids(context: Context, record: ThreadRecord) -> list[str]:
    """The ids that the next checkpoint of a thread may get."""
    pending = await find_pending(context, record)
    return list(dict.fromkeys(part.next_id for part in pending.parts))


def _part(entry: Entry) -> Part | None:
    value = cast("dict[str, Any]", fields_of(entry.value))
    if not value.keys() >= _FIELDS:  # a caller recorded it
        return None
    return Part(
        at=value["at"],
        messages=value["messages"],
        run=value["run"],
        next_id=value["next"],
    )


async def _is_saved(context: Context, record: ThreadRecord, id_: str) -> bool:
    [found] = await context.backend.read([CheckpointKey(record.family, id_)])
    return found is not None


class NewPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part to be recorded in a thread whose head must be the expected one."""

    thread: str
    start: Start
    head: Checkpoint | None
    number: int
    part: Part
    forget: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key of the part."""
        return f"{prefix_of(self.head)}{self.number:06d}"


async def add_part(context: Context, new: NewPart) -> None:
    """Record a part; `Conflict` if another writer was there first."""
    now = context.clock()
    part = new.part
    value = {
        "at": part.at,
        "messages": part.messages,
        "run": part.run,
        "next": part.next_id,
    }
    data = codec.encode(value, "messages")
    write = Write(
        thread=new.thread,
        at=now,
        expect=new.head,
        start=new.start if new.head is None else None,
        entries=(Entry(new.thread, OF_THREAD, new.key, data, now),),
        forget=new.forget,
    )
    [receipt] = await context.backend.commit([write])
    [in_force] = receipt.entries
    if in_force.data != data:
        raise Conflict(
            "another recorder has added messages after the same checkpoint",
            code="head_moved",
            thread=new.thread,
            found=new.head,
        )


async def forget(context: Context, thread: str, keys: tuple[str, ...]) -> None:
    """Remove entries of a thread itself."""
    write = Write(thread=thread, at=context.clock(), expect=UNSET, forget=keys)
    await context.backend.commit([write])
