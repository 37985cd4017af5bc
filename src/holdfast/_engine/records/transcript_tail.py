"""The end of a conversation: reading, dropping and replacing its last messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import msgspec

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads import parts
from holdfast._engine.threads.drafts import (
    Basis,
    NextState,
    StateTexts,
    path,
    put_text,
    read_values,
)
from holdfast._engine.threads.load import read_listed
from holdfast._messages.tally import Tally, without_last
from holdfast._values import codec
from holdfast._values.list_tail import Tail, shortened
from holdfast._values.manifest import INLINE_SIZE, Value
from holdfast._values.records import ThreadRecord, Unset
from holdfast._values.rope import Blocks, Rope
from holdfast.conversations import counts_of, tally, tally_of

T = TypeVar("T")

MESSAGES = "messages"


class Untouched(Exception):
    """Raised by a decision that there is nothing to change: nothing is saved."""


# --- reading --------------------------------------------------------------------------


class Newest(msgspec.Struct, frozen=True):
    """The last messages of a conversation in their order, and how many there are."""

    messages: list[object]
    count: int


async def newest(context: Context, thread: str, count: int) -> Newest:
    """The last few messages; none if the conversation does not exist."""

    async def read(known: OpenedCheckpoint) -> Newest:
        values = await read_values(context, known, ("counts",))
        found = await newest_of(context, known, count)
        return Newest(found, tally_of(values.get("counts")).messages)

    return await _read_head(context, thread, read) or Newest([], 0)


async def newest_messages(context: Context, thread: str, count: int) -> list[object]:
    """Like `newest`, without how many there are."""

    def read(known: OpenedCheckpoint) -> Awaitable[list[object]]:
        return parts.newest_of(context, known, MESSAGES, count)

    return await _read_head(context, thread, read) or []


async def _read_head(
    context: Context,
    thread: str,
    read: Callable[[OpenedCheckpoint], Awaitable[T]],
) -> T | None:
    record = await context.find_thread(thread)
    if record is None or record.head is None:
        return None

    async def read_record(context: Context, record: ThreadRecord) -> T:
        assert record.head is not None
        known = context.known(thread, record.head)
        found = await read(known)
        context.cache.give(thread, known)
        return found

    return await read_listed(context, record, read_record)


async def newest_of(
    context: Context, known: OpenedCheckpoint, count: int
) -> list[object]:
    """The last few messages of a checkpoint."""
    return await parts.newest_of(context, known, MESSAGES, count)


# --- changing -------------------------------------------------------------------------


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """A change at the end of a conversation.

    ``drop`` messages are removed, ``None`` for all, then ``added`` are appended;
    ``values`` are set beside them, `UNSET` removes one. The counts are updated.
    """

    drop: int | None = 0
    added: Sequence[object] = ()
    values: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])


# Decides on the change, given the last messages and some of the other values.
Decide = Callable[[Tail, Mapping[str, Any]], Ending]


class EndingDraft:
    """A change at the end of a conversation; its cost does not grow with the length."""

    def __init__(self, reads: Sequence[str], decide: Decide) -> None:
        self.reads = ("counts", *reads)
        self.decide = decide

    async def plan(
        self, context: Context, parent: OpenedCheckpoint | None, blocks: Blocks
    ) -> NextState:
        if parent is None:
            raise Untouched
        before = await read_values(context, parent, self.reads)
        tail = await parts.tail_of(context, parent, MESSAGES)
        ending = self.decide(tail, before)
        values = dict(parent.manifest.values)
        plan = NextState(is_mapping=True, values=values, bodies=dict(parent.bodies))
        basis = Basis(context, parent, blocks)
        await _put_messages(plan, basis, tail, ending)
        for name, value in _beside(tail, before, ending).items():
            plan.bodies.pop(name, None)
            if isinstance(value, Unset):
                plan.values.pop(name, None)
            else:
                await put_text(plan, basis, name, codec.encode(value, path(name)))
        return plan

    def matches(self, stored: StateTexts, before: StateTexts | None) -> bool:
        if before is None:  # the values it depends on were removed
            return False
        values = {name: codec.decode(text) for name, text in before.values.items()}
        messages = cast("list[object]", values.get(MESSAGES, []))
        tail = Tail.of(messages)
        try:
            ending = self.decide(tail, values)
        except Untouched:
            return False
        stay = 0 if ending.drop is None else len(messages) - ending.drop
        new = {MESSAGES: [*messages[:stay], *ending.added]}
        expected = values | _beside(tail, values, ending) | new
        found = {name: codec.decode(text) for name, text in stored.values.items()}
        return found == {
            name: value
            for name, value in expected.items()
            if not isinstance(value, Unset)
        }


def _beside(tail: Tail, before: Mapping[str, Any], ending: Ending) -> dict[str, object]:
    counted = _counted(tail, tally_of(before.get("counts")), ending)
    return {"counts": counts_of(counted), **ending.values}


def _counted(tail: Tail, counted: Tally, ending: Ending) -> Tally:
    if ending.drop is None:
        return tally(ending.added)
    for number, message in zip(range(ending.drop), tail, strict=False):
        counted = without_last(counted, message, _EarlierMessages(tail, number + 1))
    return counted.after(ending.added)


class _EarlierMessages:
    """The messages before the last few, newest first; can be iterated repeatedly."""

    def __init__(self, tail: Tail, count: int) -> None:
        self.tail, self.count = tail, count

    def __iter__(self) -> Iterator[object]:
        return self.tail.after(self.count)


async def _put_messages(
    plan: NextState, basis: Basis, tail: Tail, ending: Ending
) -> None:
    assert basis.parent is not None
    old = basis.parent.manifest.values.get(MESSAGES, b"[]")
    added = codec.encode(list(ending.added), path(MESSAGES))
    if ending.drop is None:
        plan.bodies.pop(MESSAGES, None)
        await put_text(plan, basis, MESSAGES, added)
    elif not isinstance(old, Rope):
        stay = tail.newest(len(old))[: -ending.drop or None]
        text = codec.encode([*stay, *ending.added], path(MESSAGES))
        await put_text(plan, basis, MESSAGES, text)
    else:
        await _shorten(plan, basis, tail, ending)


async def _shorten(plan: NextState, basis: Basis, tail: Tail, ending: Ending) -> None:
    """Drop whole segments, and write again what stays of a segment that is cut."""
    assert basis.parent is not None
    assert ending.drop is not None
    old = _rope(basis.parent.manifest.values[MESSAGES])
    body = await basis.context.body(basis.parent, MESSAGES, old)
    segments, left = tail.boundary(ending.drop)
    text = codec.encode([*left, *ending.added], path(MESSAGES))
    plan.bodies.pop(MESSAGES, None)
    stay = len(body.sizes) - segments
    if stay <= 0 or sum(body.sizes[:stay]) + len(text) <= INLINE_SIZE:
        front = tail.newest(len(body.text))[: -ending.drop or None]
        text = codec.encode([*front, *ending.added], path(MESSAGES))
        await put_text(plan, basis, MESSAGES, text)
        return
    plan.put(MESSAGES, shortened(old, body, segments, text[1:-1], basis.blocks))


def _rope(value: Value) -> Rope:
    assert isinstance(value, Rope)
    return value
