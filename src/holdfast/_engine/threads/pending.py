"""Messages that a recorder got after the last checkpoint, durable in the journal.

Each part has the id that the next checkpoint will get. Once a checkpoint with this id
exists, the part is obsolete; the save that makes it removes the part as well.

Every recorder has an id of its own. One that goes on from the parts of another claims
them by its first part: it names the id of the part before it. Two recorders cannot both
write the part with a number, so one that was passed in this way finds out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads.anchors import claim_key
from holdfast._engine.threads.journal import OF_THREAD, entry_fields
from holdfast._engine.threads.journal_keys import PENDING
from holdfast._messages.loose import fields_of
from holdfast._port import Ancestors, CheckpointKey, Entries, Start, Write
from holdfast._values import codec
from holdfast._values.limits import LARGEST_ELEMENT, checked_size
from holdfast._values.manifest import Value, decode_manifest
from holdfast._values.records import UNSET, Checkpoint, Entry, ThreadRecord
from holdfast._values.rope import Rope
from holdfast._values.typed import prepare
from holdfast.errors import Conflict

_NO_HEAD: Final = "-"


class _Form(msgspec.Struct):
    at: Annotated[int, msgspec.Meta(ge=0)]
    messages: list[dict[Any, Any]]
    run: dict[Any, Any]
    next: str
    after: str | None


_FIELDS: Final = frozenset(_Form.__struct_fields__)


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that take the place of those from ``at`` on, and the run beside them.

    ``next_id`` is the id of the checkpoint that will have them, ``after`` that of the
    part before this one.
    """

    at: int
    messages: list[dict[str, Any]]
    run: dict[str, Any]
    next_id: str
    after: str | None = None


class Pending(msgspec.Struct, frozen=True):
    """The parts after a head, and the messages that another writer has passed over.

    ``keys`` are those of the parts, ``obsolete`` of others that the next write should
    remove. With ``is_moved`` the parts were recorded after an ancestor of the head that
    has the same messages.
    """

    parts: tuple[Part, ...] = ()
    passed_over: tuple[dict[str, Any], ...] = ()
    keys: tuple[str, ...] = ()
    obsolete: tuple[str, ...] = ()
    is_moved: bool = False


def prefix_of(head: Checkpoint | None) -> str:
    """The beginning of the keys of what is recorded after a head."""
    return f"{PENDING}{head.id if head else _NO_HEAD}:"


async def find_pending(context: Context, record: ThreadRecord) -> Pending:
    """The messages that recorders of a thread got and no checkpoint has yet."""
    entries = await context.backend.scan(
        Entries(thread=record.id, checkpoint=OF_THREAD, prefix=PENDING)
    )
    if not entries:
        return Pending()
    found = {entry.key: part for entry in entries if (part := _part(entry))}
    unsaved = await _unsaved(context, record, found.values())
    chains = _chains({k: p for k, p in found.items() if p.next_id in unsaved})
    own = prefix_of(record.head)
    chosen = own if own in chains else await _moved(context, record, chains)
    keys = chains.get(chosen, ())
    obsolete = tuple(key for key in found if key not in keys)
    lost = [found[key] for key in obsolete if found[key].next_id in unsaved]
    return Pending(
        parts=tuple(found[key] for key in keys),
        passed_over=tuple(message for part in lost for message in part.messages),
        keys=keys,
        obsolete=obsolete,
        is_moved=chosen != own,
    )


def _chains(found: dict[str, Part]) -> dict[str, tuple[str, ...]]:
    """The keys of parts that follow one another, by the beginning of their keys.

    A recorder that did not notice that its parts were discarded goes on after a part
    which is not there.
    """
    chains: dict[str, tuple[str, ...]] = {}
    for key in sorted(found):
        prefix = key[: key.rindex(":") + 1]
        before = chains.get(prefix, ())
        if found[key].after == (found[before[-1]].next_id if before else None):
            chains[prefix] = (*before, key)
    return chains


async def _moved(context: Context, record: ThreadRecord, chains: Iterable[str]) -> str:
    """The prefix of parts that are valid although the head moved.

    They are if the head has the messages before them: others may have changed what is
    beside the messages, such as the title.
    """
    head = record.head
    for prefix in chains if head else ():
        id_ = prefix.removeprefix(PENDING)[:-1]
        [at] = await context.backend.read([CheckpointKey(record.family, id_)])
        if at and head and is_same(transcript_of(at), transcript_of(head)):
            query = Ancestors(start=head, from_step=at.step, down_to_step=at.step)
            if [c.id for c in await context.backend.scan(query)] == [id_]:
                return prefix
    return prefix_of(head)


def transcript_of(checkpoint: Checkpoint) -> Value | None:
    """The messages of a checkpoint as its manifest has them."""
    return decode_manifest(checkpoint).values.get("messages")


def is_same(one: Value | None, other: Value | None) -> bool:
    """True if the bytes of two values are equal."""
    return _identity(one) == _identity(other)


def _identity(value: Value | None) -> object:
    return (value.size, value.chain) if isinstance(value, Rope) else value


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
    """The ids that the next checkpoint of a thread may get, the likely one first."""
    pending = await find_pending(context, record)
    return list(dict.fromkeys(part.next_id for part in reversed(pending.parts)))


def _part(entry: Entry) -> Part | None:
    if not fields_of(entry.value).keys() >= _FIELDS:
        return None  # a caller of an earlier version recorded it
    value = entry_fields(entry, _Form)
    return Part(
        at=value["at"],
        messages=value["messages"],
        run=value["run"],
        next_id=value["next"],
        after=value["after"],
    )


async def _unsaved(
    context: Context, record: ThreadRecord, parts: Iterable[Part]
) -> set[str]:
    """The ids of the parts that no checkpoint has got yet."""
    ids = list({part.next_id for part in parts})
    saved = await context.backend.read([CheckpointKey(record.family, i) for i in ids])
    return {id_ for id_, found in zip(ids, saved, strict=True) if found is None}


class NewPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part to be recorded in a thread whose head must be the expected one.

    The calls that belong to the id it ``claims`` belong to its own too.
    """

    thread: str
    start: Start
    head: Checkpoint | None
    number: int
    part: Part
    forget: tuple[str, ...] = ()
    claims: str | None = None

    @property
    def key(self) -> str:
        """The key of the part."""
        return f"{prefix_of(self.head)}{self.number:06d}"


async def add_part(context: Context, new: NewPart) -> bool:
    """Record a part; `Conflict` if another writer was there first.

    False if an attempt that failed has recorded an earlier form of the same part.
    """
    now = context.clock()
    entries = _entries(new, now)
    write = Write(
        thread=new.thread,
        at=now,
        expect=new.head,
        start=new.start if new.head is None else None,
        entries=entries,
        forget=new.forget,
    )
    [receipt] = await context.backend.commit([write])
    in_force = receipt.entries[0]
    if in_force.data == entries[0].data:
        return True
    found = _part(in_force)
    if found is not None and found.next_id == new.part.next_id:
        return False
    raise Conflict(
        "another recorder has added messages after the same checkpoint",
        code="head_moved",
        thread=new.thread,
        found=new.head,
    )


def _entries(new: NewPart, now: int) -> tuple[Entry, ...]:
    part = new.part
    value = {
        "at": part.at,
        "messages": part.messages,
        "run": part.run,
        "next": part.next_id,
        "after": part.after,
    }
    data = codec.encode(value, "messages", LARGEST_ELEMENT)
    # A message that is too large for a list must not become a part of one.
    values = {new.key: checked_size(data, "messages", LARGEST_ELEMENT)}
    if new.claims is not None:
        key = claim_key(new.claims, part.next_id)
        values[key] = codec.encode([part.next_id], "anchors")
    return tuple(
        Entry(new.thread, OF_THREAD, key, data, now) for key, data in values.items()
    )


async def forget(context: Context, thread: str, keys: tuple[str, ...]) -> None:
    """Remove entries of a thread itself."""
    write = Write(thread=thread, at=context.clock(), expect=UNSET, forget=keys)
    await context.backend.commit([write])


prepare(_Form)
