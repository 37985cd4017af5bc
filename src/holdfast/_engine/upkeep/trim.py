"""Removing the oldest events of a stream, with their segments and checkpoints."""

from __future__ import annotations

from datetime import timedelta
from hashlib import sha256
from typing import Any

import msgspec

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.records.streams import (
    ENTRY,
    EVENTS,
    FIRST,
    KIND,
    MOST_SEGMENTS,
    Segments,
    Span,
    events,
    number_of,
    stored_in,
    while_current,
)
from holdfast._engine.threads.drafts import NextState, StateTexts
from holdfast._engine.threads.removal import OVERTAKEN
from holdfast._engine.threads.save import Options, save
from holdfast._engine.upkeep.prune import prune
from holdfast._engine.upkeep.prune_plans import PruneRange
from holdfast._values import codec
from holdfast._values.manifest import decode_manifest
from holdfast._values.records import Checkpoint, Run, Segment
from holdfast._values.rope import Blocks, Rope, chain_of
from holdfast._values.runs import first_runs, last_runs
from holdfast.errors import Conflict, Unstorable
from holdfast.retention import Retention

# The events stand in the head; no older checkpoint of a stream is needed.
ONLY_THE_HEAD = Retention(last=1, labelled=False, tagged=False, kinds=(KIND,))
EMPTY = b"[]"


class TrimRule(msgspec.Struct, frozen=True, kw_only=True):
    """The events to remove: before a cursor, all but the last, or the older ones."""

    before: str | None = None
    last: int | None = None
    older: timedelta | None = None

    def __post_init__(self) -> None:
        given = [n for n in self.__struct_fields__ if getattr(self, n) is not None]
        if len(given) != 1:
            raise Unstorable("trim", "takes one of before, last and older; pass one")
        if self.last is not None and (type(self.last) is not int or self.last < 0):
            text = f"must be a number of events, not {self.last!r}"
            raise Unstorable("last", text)
        if not _is_age(self.older):
            raise Unstorable("older", f"must be a timedelta, not {self.older!r}")


def _is_age(value: object) -> bool:
    return value is None or isinstance(value, timedelta)


async def trim(context: Context, thread: str, rule: TrimRule) -> int:
    """Remove events from the beginning of a stream; returns how many."""

    async def target(head: Checkpoint | None) -> int | None:
        span = Span.of(thread, decode_manifest(head)) if head else None
        return await _target(context, thread, span, rule) if span else None

    number = await while_current(context, thread, target)
    if number is None:
        return 0
    draft = TrimDraft(thread, number)
    await save(context, thread, draft, Options(kind="trim"), if_changed=True)
    if draft.removed:
        await _free(context, thread)
    return draft.removed


async def _target(
    context: Context, thread: str, span: Span, rule: TrimRule
) -> int | None:
    """The number of the first event that stays, ``None`` if all stay."""
    if rule.before is not None:
        number = number_of(rule.before, "before")
    elif rule.last is not None:
        number = span.last + 1 - rule.last
    else:
        number = await _first_within(context, thread, span, rule.older or timedelta())
    number = min(number, span.last + 1)
    return number if number > span.first else None


async def _first_within(
    context: Context, thread: str, span: Span, age: timedelta
) -> int:
    """The number of the first event that is not older than an age."""
    oldest = context.clock() - age // timedelta(microseconds=1)
    after = None
    while page := await events(context, thread, after, MOST_SEGMENTS):
        for event in page:
            if event.at >= oldest:
                return number_of(event.cursor, "cursor")
        after = page[-1].cursor
    return span.last + 1


async def _free(context: Context, thread: str) -> None:
    """Remove the checkpoints that still hold trimmed events."""
    try:
        await prune(context, ONLY_THE_HEAD, PruneRange(thread=thread), dry_run=False)
    except Conflict as conflict:
        # Other writers changed the stream each time; the next trim frees the rest.
        if conflict.code not in OVERTAKEN:
            raise


class TrimDraft:
    """A stream without the events before a number.

    If others append meanwhile, only what they appended is read for the next plan: a
    trim would otherwise always be overtaken.
    """

    def __init__(self, thread: str, target: int) -> None:
        self.thread, self.target = thread, target
        self.removed = 0
        self._cut: _Cut | None = None

    async def plan(
        self, context: Context, parent: OpenedCheckpoint | None, blocks: Blocks
    ) -> NextState:
        assert parent is not None  # a stream that is trimmed has a head
        plan = NextState(is_mapping=True, values=dict(parent.manifest.values))
        span = Span.of(self.thread, parent.manifest)
        target = min(self.target, span.last + 1)
        self.removed = max(0, target - span.first)
        if not self.removed:
            return plan
        plan.values[FIRST] = b"%d" % target
        if isinstance(span.events, Rope):
            segments = Segments(context, parent.head.family, span.events)
            await self._shorten(plan, segments, blocks)
        else:
            going, staying = divided(stored_in(span.events[1:-1]), target)
            plan.values[EVENTS] = codec.encode(staying)
            plan.forget = keys_of(going)
        return plan

    async def _shorten(
        self, plan: NextState, segments: Segments, blocks: Blocks
    ) -> None:
        cut = self._cut
        if cut is None or not cut.is_of(segments.rope):
            cut = await _cut(segments, self.target)
        self._cut = cut = await cut.extended(segments)
        plan.forget = cut.keys
        plan.values[EVENTS] = cut.rope(plan, segments, blocks) or EMPTY

    def matches(self, stored: StateTexts, before: StateTexts | None) -> bool:
        del stored, before  # no two trims have the same id
        return False


class _Cut(msgspec.Struct, frozen=True):
    """The division of a rope into segments that go and segments that stay.

    Of the first ``known`` segments, in ``runs``, the first ``dropped`` go, with
    ``freed`` bytes of text. ``rest`` are the events of the last dropped segment that
    stay, and ``chain`` is the running digest over all that stay.
    """

    runs: tuple[Run, ...] = ()
    known: int = 0
    dropped: int = 0
    freed: int = 0
    rest: bytes = b""
    chain: bytes = b""
    keys: tuple[str, ...] = ()

    def is_of(self, rope: Rope) -> bool:
        """True if a rope begins with the segments that this cut knows."""
        return tuple(first_runs(rope.runs, self.known)) == self.runs

    async def extended(self, segments: Segments) -> _Cut:
        """The same cut, with all segments of a rope known."""
        chain = self.chain
        for place in range(self.known, segments.count, MOST_SEGMENTS):
            parts = await segments.read(place, MOST_SEGMENTS)
            chain = chain_of((sha256(part).digest() for part in parts), chain)
        return msgspec.structs.replace(
            self, runs=segments.rope.runs, known=segments.count, chain=chain
        )

    def rope(self, plan: NextState, segments: Segments, blocks: Blocks) -> Rope | None:
        """The rope of the events that stay, ``None`` if none does."""
        old, staying = segments.rope, self.known - self.dropped
        runs = tuple(last_runs(old.runs, 0, staying)) if staying else ()
        size, replaced = old.size - self.freed, old.next_replaced
        if self.rest:
            number = blocks.number(replaced)
            plan.segments.append(Segment(number, self.rest))
            runs, replaced = (Run(number, number), *runs), number + 1
            size += len(self.rest) + 1
        if not runs:
            return None
        return msgspec.structs.replace(
            old, runs=runs, size=size, chain=self.chain, next_replaced=replaced
        )


async def _cut(segments: Segments, target: int) -> _Cut:
    """The cut of a rope before a number; knows the segments up to there."""
    keys: list[str] = []
    dropped = freed = 0
    rest = b""
    for place in range(0, segments.count, MOST_SEGMENTS):
        for part in await segments.read(place, MOST_SEGMENTS):
            going, staying = divided(stored_in(part), target)
            if going:
                dropped, freed = dropped + 1, freed + len(part) + 1
                keys += keys_of(going)
            if staying:
                rest = codec.encode(staying)[1:-1] if going else b""
                break
        else:
            continue
        break
    return _Cut(
        runs=tuple(first_runs(segments.rope.runs, dropped)),
        known=dropped,
        dropped=dropped,
        freed=freed,
        rest=rest,
        chain=chain_of([sha256(rest).digest()]) if rest else b"",
        keys=tuple(keys),
    )


def divided(
    stored: list[dict[str, Any]], target: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The stored events before a number, and those from it on."""
    count = sum(item["number"] < target for item in stored)
    return stored[:count], stored[count:]


def keys_of(stored: list[dict[str, Any]]) -> tuple[str, ...]:
    """The journal keys of stored events that were appended under a key."""
    return tuple(ENTRY + item["key"] for item in stored if "key" in item)
