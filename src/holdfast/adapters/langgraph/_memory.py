"""Keeping items: each put is a checkpoint of the item's thread, each search a listing.

How long an item lives stands in the metadata of its checkpoint, and when it was last
read in the journal. One whose time is over is not there any more for anybody.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec
from langgraph.store.base import (
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from holdfast._engine.context import Context
from holdfast._engine.threads import journal, removal, save
from holdfast._engine.threads.drafts import StateDraft
from holdfast._engine.threads.lineage import find_record
from holdfast._engine.threads.load import read_listed, state_of
from holdfast._port import Start, Threads
from holdfast._values.records import Checkpoint, ThreadRecord, encode_metadata
from holdfast.adapters.langgraph import _items
from holdfast.adapters.langgraph._types import Types

READ = "read_at"
_MINUTE = 60_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BEGINNING = Start(kind=_items.KIND, anew=True)


class Kept(msgspec.Struct, frozen=True):
    """An item as it is kept, and how it was put."""

    thread: ThreadRecord
    head: Checkpoint
    value: dict[str, Any]
    about: dict[str, Any]
    score: float | None = None

    def item(self) -> SearchItem:
        """As LangGraph sees it."""
        namespace, key = _items.place_of(self.thread.id)
        return SearchItem(
            namespace=namespace,
            key=key,
            value=self.value,
            created_at=_moment(self.thread.created_at),
            updated_at=_moment(self.head.saved_at),
            score=self.score,
        )


def _moment(at: int) -> datetime:
    return _EPOCH + timedelta(microseconds=at)


async def batch(context: Context, types: Types, ops: Iterable[Op]) -> list[Result]:
    """The results of operations, one after the other."""
    results: list[Result] = []
    for op in ops:
        if isinstance(op, GetOp):
            results.append(await _get(context, types, op))
        elif isinstance(op, PutOp):
            await _put(context, types, op)
            results.append(None)
        elif isinstance(op, SearchOp):
            results.append(await _search(context, types, op))
        else:
            results.append(await _list_namespaces(context, op))
    return results


async def _get(context: Context, types: Types, op: GetOp) -> Item | None:
    thread = await find_record(context, _items.item_name(op.namespace, op.key))
    kept = await _kept(context, types, thread) if thread else None
    if kept is None:
        return None
    await _refresh(context, [kept] if op.refresh_ttl else [])
    found = kept.item()
    return Item(
        value=found.value,
        key=found.key,
        namespace=found.namespace,
        created_at=found.created_at,
        updated_at=found.updated_at,
    )


async def _put(context: Context, types: Types, op: PutOp) -> None:
    name = _items.item_name(op.namespace, op.key)
    if op.value is None:
        await removal.delete_threads(context, [name])
        return
    about = {"ttl": op.ttl, "index": op.index}
    how = save.Options(
        metadata=encode_metadata({k: v for k, v in about.items() if v is not None}),
        start=_BEGINNING,
    )
    draft = StateDraft(types.plain(op.value, "value"))
    await save.save(context, name, draft, how)


async def _kept(context: Context, types: Types, thread: ThreadRecord) -> Kept | None:
    """An item that is still there and whose time is not over."""

    async def read(context: Context, thread: ThreadRecord) -> Kept:
        assert thread.head is not None
        state = await state_of(context, context.known(thread.id, thread.head))
        value = cast("dict[str, Any]", types.revive(state))
        return Kept(thread, thread.head, value, thread.head.metadata)

    if await _is_over(context, thread):
        return None
    return await read_listed(context, thread, read)


async def _is_over(context: Context, thread: ThreadRecord) -> bool:
    assert thread.head is not None
    minutes = thread.head.metadata.get("ttl")
    if minutes is None:
        return False
    read = await journal.recorded_one(context, thread.id, READ, 0, thread.head)
    last = max(thread.head.saved_at, cast("int", read))
    return context.clock() >= last + int(cast("float", minutes) * _MINUTE)


async def _refresh(context: Context, items: Iterable[Kept]) -> None:
    """Let the time of items that have one begin again."""
    for kept in items:
        if "ttl" in kept.about:
            where = journal.JournalPlace(
                kept.thread.id, _BEGINNING, kept.head, replace=True
            )
            entries = where.entries(context, {READ: context.clock()})
            await journal.record(context, where, entries)


async def _search(context: Context, types: Types, op: SearchOp) -> list[SearchItem]:
    found: list[Kept] = []
    # Without anything to look for in the items, no more are read than are wanted.
    enough = None if op.filter or op.query else op.offset + op.limit
    for thread in await _threads(context, _items.within(op.namespace_prefix)):
        kept = await _kept(context, types, thread)
        kept = _wanted(kept, op) if kept else None
        if kept is not None:
            found.append(kept)
        if len(found) == enough:
            break
    found.sort(key=lambda kept: -(kept.score or 0.0))
    chosen = found[op.offset : op.offset + op.limit]
    await _refresh(context, chosen if op.refresh_ttl else [])
    return [kept.item() for kept in chosen]


def _wanted(kept: Kept, op: SearchOp) -> Kept | None:
    if not _items.matches(kept.value, op.filter):
        return None
    if not op.query:
        return kept
    score = _items.score(kept.value, kept.about.get("index"), op.query)
    return msgspec.structs.replace(kept, score=score) if score else None


async def _threads(context: Context, prefix: str) -> list[ThreadRecord]:
    """The threads of items, last put first."""
    page = await context.backend.scan(Threads(kind=_items.KIND, prefix=prefix))
    return sorted(page, key=lambda thread: -(thread.head.seq if thread.head else 0))


async def _list_namespaces(
    context: Context, op: ListNamespacesOp
) -> list[tuple[str, ...]]:
    threads = await _threads(context, _items.PREFIX)
    living = [t.id for t in threads if not await _is_over(context, t)]
    return _items.listed(living, op)


async def sweep(context: Context) -> int:
    """Delete the items whose time is over; how many there were."""
    threads = await _threads(context, _items.PREFIX)
    over = [thread.id for thread in threads if await _is_over(context, thread)]
    return await removal.delete_threads(context, over) if over else 0
