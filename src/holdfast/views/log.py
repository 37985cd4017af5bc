"""Pages of a log: of a family with its lanes, or of the line of one thread."""

from __future__ import annotations

import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads import family, lineage
from holdfast._engine.threads.lineage import HistoryQuery
from holdfast._port import CheckpointKey, FamilySizes, Saves
from holdfast._values.records import Checkpoint, Page, ThreadRecord
from holdfast._values.reference import Named, parse
from holdfast._values.typed import prepare
from holdfast.errors import Unstorable
from holdfast.views.lanes import Lanes, mark_of
from holdfast.views.lineage import newest_by
from holdfast.views.rows import heads_of, parents_of, row_maker
from holdfast.views.showing import PageSize, Showing

Scope: TypeAlias = Literal["family", "line", "all"]

# How many newer rows a page shows above the checkpoint that it was asked for.
ABOVE = 20
# In a family with more threads a page in the middle begins without the lanes above it.
MOST_LANES = 100
# A cursor comes from outside; a larger one is not ours.
LARGEST_CURSOR = 1 << 20


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page: of the thread's whole family, of its line, or all that was saved in it.

    ``cursor`` continues a page; ``at`` is a checkpoint that the page must have: a
    reference in the thread or, in the log of a family, any of its ids.
    """

    thread: str
    scope: Scope = "family"
    limit: PageSize = 200
    cursor: str | None = None
    at: str | None = None


class LogPlace(msgspec.Struct, frozen=True, array_like=True):
    """The beginning of a page: before a sequence number, with the lanes there.

    ``line`` is the mark of the next checkpoint on the line of the thread's head.
    """

    before: int | None = None
    line: str | None = None
    lanes: tuple[str | None, ...] = ()

    def encoded(self) -> str:
        """The place as a cursor."""
        packed = zlib.compress(msgspec.json.encode(self))
        return urlsafe_b64encode(packed).decode().rstrip("=")


def decoded(cursor: str) -> LogPlace:
    """The place of a cursor."""
    try:
        packed = urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        text = zlib.decompressobj().decompress(packed, LARGEST_CURSOR)
        return msgspec.json.decode(text, type=LogPlace)
    except (ValueError, zlib.error, msgspec.MsgspecError):
        text_ = "is not one that a page gave; begin without a cursor"
        raise Unstorable("cursor", text_) from None


async def log_document(
    context: Context, query: LogQuery, showing: Showing
) -> dict[str, Any]:
    """A page of a log, newest first."""
    if query.scope not in get_args(Scope):
        raise Unstorable("scope", f"is family, line or all, not {query.scope!r}")
    # Heads first: a checkpoint that is saved in between then still has its parent in
    # the listing.
    members = await family.family(context, query.thread)
    [record] = [member for member in members if member.id == query.thread] or [
        await context.get_thread(query.thread)
    ]
    place = await _begin(context, record, query, members)
    page = await _page(context, record, query, place)
    total, newer = await _counts(context, record, query, page)
    rows, following = await _rows(context, page, place, members, showing)
    return {
        "thread": query.thread,
        "scope": query.scope,
        "total": total,
        "position": newer,
        "rows": rows,
        "next": following.encoded() if len(page) == query.limit else None,
    }


async def _begin(
    context: Context,
    record: ThreadRecord,
    query: LogQuery,
    members: Page[ThreadRecord],
) -> LogPlace:
    if query.cursor is not None:
        return decoded(query.cursor)
    head = record.head
    if query.at is None or head is None:
        return LogPlace(line=mark_of(head.id) if head else None)
    if query.scope == "family":
        newest = await _above(context, await _anywhere(context, record, query.at))
        line = await _line_mark(context, record, newest)
        return LogPlace(newest.seq + 1, line, await _lanes(context, members, newest))
    target = await lineage.resolve_in(context, record, query.at)
    if query.scope == "line":
        return LogPlace(target.seq + 1, mark_of(target.id))
    return LogPlace(target.seq + 1, await _line_mark(context, record, target))


async def _anywhere(context: Context, record: ThreadRecord, at: str) -> Checkpoint:
    """A checkpoint of a family by its id, or what a reference means in a thread."""
    if isinstance(parse(at), Named):
        [found] = await context.backend.read([CheckpointKey(record.family, at)])
        if found is not None:
            return found
    return await lineage.resolve_in(context, record, at)


async def _above(context: Context, target: Checkpoint) -> Checkpoint:
    newer = Saves(
        family=target.family, after=target.seq, oldest_first=True, limit=ABOVE
    )
    return next(reversed([target, *await context.backend.scan(newer)]))


async def _lanes(
    context: Context, members: Page[ThreadRecord], newest: Checkpoint
) -> tuple[str, ...]:
    """The lanes above a page: what the threads saved next leads into it.

    Saves of a thread after it was rewound, further up, are not looked for.
    """
    if len(members) > MOST_LANES:
        return ()
    first: list[Checkpoint] = []
    for thread in members:
        family, seq = thread.family, newest.seq
        saves = Saves(
            family=family, thread=thread.id, after=seq, oldest_first=True, limit=1
        )
        first += await context.backend.scan(saves)
    parents = await parents_of(context, first)
    found = [parents.get(checkpoint.parent or "") for checkpoint in first]
    return tuple(mark_of(p.id) for p in found if p is not None and p.seq <= newest.seq)


async def _line_mark(
    context: Context, record: ThreadRecord, newest: Checkpoint
) -> str | None:
    """The mark of the first checkpoint on a head's line that is not newer."""
    found = await newest_by(context, record, newest.seq)
    return mark_of(found.id) if found else None


async def _page(
    context: Context, record: ThreadRecord, query: LogQuery, place: LogPlace
) -> Sequence[Checkpoint]:
    if query.scope == "family":
        return await family.tree(context, record.id, place.before, query.limit)
    return await _of_thread(context, query, place.before)


async def _of_thread(
    context: Context, query: LogQuery, before: int | None
) -> Sequence[Checkpoint]:
    everything = query.scope == "all"
    if query.at is None or query.cursor is not None:
        wanted = HistoryQuery(limit=query.limit, before=before, all=everything)
        return await lineage.history(context, query.thread, wanted)
    # A page before a checkpoint leaves that checkpoint out, so it is put in front.
    first = await lineage.resolve(context, query.thread, query.at)
    wanted = HistoryQuery(limit=query.limit, before=first, all=everything)
    rest = await lineage.history(context, query.thread, wanted)
    return (first, *rest)[: query.limit]


async def _counts(
    context: Context,
    record: ThreadRecord,
    query: LogQuery,
    page: Sequence[Checkpoint],
) -> tuple[int | None, int | None]:
    """The number of rows in all, and of those before this page; ``None`` if unknown."""
    if query.scope == "line":
        steps = record.head.step if record.head else 0
        return steps, steps - page[0].step if page else 0
    if query.scope == "all":
        return None, None
    families = (record.family,)
    total = await _saved(context, FamilySizes(families=families))
    if not page:
        return total, total
    upto = FamilySizes(families=families, up_to=page[0].seq)
    return total, total - await _saved(context, upto)


async def _saved(context: Context, sizes: FamilySizes) -> int:
    found = await context.backend.scan(sizes)
    return sum(size.checkpoints for size in found)


async def _rows(
    context: Context,
    page: Sequence[Checkpoint],
    place: LogPlace,
    members: Page[ThreadRecord],
    showing: Showing,
) -> tuple[list[dict[str, Any]], LogPlace]:
    maker = await row_maker(context, page, heads_of(members), showing)
    lanes, line = Lanes(place.lanes), place.line
    rows: list[dict[str, Any]] = []
    for checkpoint in page:
        placed = lanes.place(checkpoint)
        on_line = mark_of(checkpoint.id) == line
        if on_line:
            line = mark_of(checkpoint.parent) if checkpoint.parent else None
        rows.append(
            {
                **maker.row(checkpoint),
                "lane": placed.at,
                "lanes": list(placed.lanes),
                "ending": list(placed.ending),
                "tip": placed.tip,
                "on_line": on_line,
            }
        )
    before = page[-1].seq if page else place.before
    return rows, LogPlace(before, line, tuple(lanes.awaited))


prepare(LogPlace)
