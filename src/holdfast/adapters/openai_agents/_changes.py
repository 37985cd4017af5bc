"""What a session does to its conversation, each in one checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.records import transcript_tail
from holdfast._engine.records.conversations import KIND, missing, thread_of
from holdfast._engine.records.transcript_tail import Ending, EndingDraft, Untouched
from holdfast._engine.threads import moves, save
from holdfast._engine.threads.drafts import (
    AmendDraft,
    Amendment,
    ListsDraft,
    StateDraft,
)
from holdfast._engine.threads.lineage import Reference
from holdfast._engine.threads.load import loaded
from holdfast._messages.transcript import fields_of
from holdfast._port import Start, ThreadKey
from holdfast._values import codec
from holdfast._values.list_tail import Tail
from holdfast._values.records import UNSET, Checkpoint, ThreadRecord
from holdfast._values.reference import HEAD
from holdfast.adapters.openai_agents._paused import RUN, Change, next_run, run_after
from holdfast.conversations import counts_of, tally, tally_of
from holdfast.errors import Conflict, NotFound, Unstorable

Items = list[dict[str, Any]]


class Place(msgspec.Struct, frozen=True):
    """The conversation of a session, and whose it is when it begins."""

    id: str
    owner: str | None = None
    agent: str | None = None

    @property
    def thread(self) -> str:
        """The thread of the conversation."""
        return thread_of(self.id)

    @property
    def start(self) -> Start:
        """How it begins."""
        return Start(kind=KIND, owner=self.owner, agent=self.agent)


def checked(items: Sequence[object]) -> Items:
    """Items that can be kept."""
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            kind = type(item).__name__
            raise Unstorable(
                f"items[{number}]",
                f"is no dict but {kind}; pass .model_dump(exclude_unset=True) or so",
            )
    return cast("Items", list(items))


# --- reading --------------------------------------------------------------------------


async def items(context: Context, place: Place, limit: int | None) -> Items:
    """The last items, or all, in their order; none if there is no conversation."""
    if limit is None or limit < 0:
        return (await present(context, place)).items
    await admit(context, place)
    found = await transcript_tail.newest(context, place.thread, limit)
    return cast("Items", found.messages)


class Present(msgspec.Struct, frozen=True):
    """The items of one checkpoint, and the id of the run that is paused there."""

    items: Items
    run: object = None


async def present(context: Context, place: Place) -> Present:
    """What there is now; nothing if there is no conversation."""
    await admit(context, place)
    try:
        state = (await loaded(context, place.thread, HEAD)).values
    except NotFound:
        return Present([])
    run = fields_of(state.get(RUN)).get("id")
    return Present(cast("Items", state.get("messages", [])), run)


async def admit(context: Context, place: Place) -> None:
    """Raise `NotFound` if the conversation is another owner's."""
    if place.owner is not None:
        await _admit(context, place)


async def _admit(context: Context, place: Place) -> ThreadRecord | None:
    """The conversation's thread, living or not; another owner's is not found."""
    [record] = await context.backend.read([ThreadKey(place.thread)])
    is_living = record is not None and record.deleted_at is None
    if record and is_living and place.owner not in (None, record.owner):
        raise missing(place.id)
    return record


# --- changing -------------------------------------------------------------------------


async def change(context: Context, place: Place, wanted: Change) -> Checkpoint:
    """Make a change; `Untouched` if the conversation is not as it was expected."""
    if not wanted.only_adds:
        try:
            return await _save(context, place, _ending(wanted), wanted)
        except Untouched:
            if wanted.dropped is not None:
                raise
        # There is nothing to drop, and nothing to add to either.
        wanted = msgspec.structs.replace(wanted, dropped=())
    return await _save(context, place, _adding(context, wanted), wanted)


async def pop(context: Context, place: Place, metadata: bytes) -> dict[str, Any] | None:
    """Drop the last item and give it, ``None`` if there is none."""
    popped: list[object] = []

    def decide(tail: Tail, before: Mapping[str, Any]) -> Ending:
        popped[:] = tail.newest(1)
        if not popped:
            raise Untouched
        return Ending(drop=1, values=run_after(before.get(RUN), popped, ()))

    how = Change(kind="pop", metadata=metadata)
    try:
        await _save(context, place, EndingDraft((RUN,), decide), how)
    except Untouched:
        return None
    return cast("dict[str, Any]", popped[0])


async def clear(context: Context, place: Place, metadata: bytes) -> None:
    """Drop all items, and begin a conversation anew that was deleted."""
    record = await _admit(context, place)
    if record is None:
        return
    try:
        if record.deleted_at is None:
            wanted = Change(dropped=None, run=None, kind="clear", metadata=metadata)
            await change(context, place, wanted)
        else:
            await _begin(context, place)
    except Untouched:
        return


async def _begin(context: Context, place: Place) -> None:
    empty: dict[str, object] = {
        "created_at": context.clock(),
        "messages": [],
        "counts": counts_of(tally(())),
    }
    how = save.Options(expect=None, start=place.start)
    try:
        await save.save(context, place.thread, StateDraft(empty), how)
    except Conflict as conflict:
        if conflict.code != "head_moved":  # somebody else was quicker
            raise


async def fork(context: Context, place: Place, new: Place, at: Reference) -> None:
    """A new conversation that shares its history with this one up to a checkpoint."""
    await admit(context, place)
    await moves.fork(context, place.thread, new.thread, at)


async def _save(
    context: Context, place: Place, draft: AmendDraft | EndingDraft, wanted: Change
) -> Checkpoint:
    how = save.Options(kind=wanted.kind, metadata=wanted.metadata, start=place.start)
    while True:
        if place.owner is not None:
            record = await _admit(context, place)
            # Nobody else's may begin between this look and the save.
            how = msgspec.structs.replace(how, expect=UNSET if record else None)
        try:
            return await save.save(context, place.thread, draft, how)
        except Conflict as conflict:
            if conflict.code == "thread_deleted":
                raise _deleted(place) from None
            if how.expect is UNSET or conflict.code != "head_moved":
                raise


def _deleted(place: Place) -> Conflict:
    return Conflict(
        f"session {place.id!r} was deleted; clear_session() begins it anew",
        code="thread_deleted",
        thread=place.thread,
    )


def _adding(context: Context, wanted: Change) -> AmendDraft:
    """More items at the end, without a look at those that are there."""
    lists = ListsDraft({"messages": wanted.added})
    now = context.clock()

    def longer(before: dict[str, Any] | None) -> Amendment:
        old = before or {}
        is_same_run = wanted.run is UNSET or (wanted.run is None and RUN not in old)
        if not wanted.added and is_same_run:
            raise Untouched
        counted = tally_of(old.get("counts")).after(wanted.added)
        values: dict[str, object] = {} if before else {"created_at": now}
        values["counts"] = counts_of(counted)
        return Amendment(values | next_run(wanted, counted.open, old), lists)

    return AmendDraft(("counts", RUN), longer)


def _ending(wanted: Change) -> EndingDraft:
    """Another end, or another beginning, than there is."""

    def decide(tail: Tail, before: Mapping[str, Any]) -> Ending:
        counted = tally_of(before.get("counts"))
        if wanted.at is not None and counted.messages != wanted.at:
            raise Untouched
        values = next_run(wanted, tally(wanted.added).open, before)
        if wanted.dropped is None:
            if not counted.messages and not wanted.added and RUN not in before:
                raise Untouched
            return Ending(drop=None, added=wanted.added, values=values)
        if _text(tail.newest(len(wanted.dropped))) != _text(list(wanted.dropped)):
            raise Untouched
        front = _unexpired(tail, wanted)
        if front is not None:
            return Ending(drop=None, added=[*front, *wanted.added], values=values)
        return Ending(drop=len(wanted.dropped), added=wanted.added, values=values)

    return EndingDraft((RUN,), decide)


def _text(items: list[object]) -> bytes:
    """As it is stored: that of an item which holds a NaN equals itself."""
    return codec.encode(items, "items")


def _unexpired(tail: Tail, wanted: Change) -> list[object] | None:
    """What stays in front of the dropped items, ``None`` if all of it does."""
    if wanted.expired is None or wanted.dropped is None:
        return None
    front = list(tail.after(len(wanted.dropped)))[::-1]
    for number, item in enumerate(front):
        if not wanted.expired(item):
            return front[number:] if number else None
    return []
