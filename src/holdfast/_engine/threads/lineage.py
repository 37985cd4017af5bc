"""Finding checkpoints of a thread: references, ancestry, history."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

import msgspec

from holdfast._engine.context import Context, missing_thread
from holdfast._engine.threads import references
from holdfast._port import (
    Ancestors,
    CheckpointKey,
    LineLength,
    Marked,
    Matches,
    Saves,
)
from holdfast._values.arguments import checked_flag
from holdfast._values.moment import Ago, Clock, Until
from holdfast._values.records import (
    Checkpoint,
    Page,
    ThreadRecord,
    checked_limit,
    checked_name,
)
from holdfast._values.reference import (
    Back,
    Labelled,
    Moved,
    Named,
    Parsed,
    Step,
    Tagged,
    Upstream,
    parse,
)
from holdfast.errors import NotFound, Unstorable

Reference = Checkpoint | str
Order = Literal["newest", "oldest"]

MOST_MATCHES = 10
CHUNK = 200


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The choice of checkpoints of a thread."""

    limit: int | None = 100
    before: Reference | int | None = None
    order: Order = "newest"
    all: bool = False
    tag: str | None = None
    label: str | None = None

    def __post_init__(self) -> None:
        checked_flag(self.all, "all")
        for name, mark in (("tag", self.tag), ("label", self.label)):
            if mark is not None:
                checked_name(mark, name)


async def resolve(context: Context, thread: str, reference: Reference) -> Checkpoint:
    """The checkpoint that a reference means in a thread."""
    return await resolve_in(context, await context.get_thread(thread), reference)


async def resolve_in(
    context: Context, record: ThreadRecord, reference: Reference
) -> Checkpoint:
    """Like `resolve`, in a thread whose record has been read already."""
    if record.head is None:
        raise missing_thread(record.id)
    if isinstance(reference, Checkpoint):
        return await _own(context, record, reference)
    parsed = parse(reference)
    if isinstance(parsed, Named):
        return await _named(context, record, parsed.id)
    if not isinstance(parsed, Labelled | Tagged):
        return await _from_head(context, record, record.head, parsed)
    marked = await _newest_marked(context, record, parsed)
    if marked is None:
        raise NotFound(
            f"thread {record.id!r} has no checkpoint with {reference!r}; see history()",
            thread=record.id,
            reference=reference,
        )
    return marked


async def _from_head(
    context: Context, record: ThreadRecord, head: Checkpoint, parsed: Parsed
) -> Checkpoint:
    """The checkpoint for a reference that begins with ``@``."""
    match parsed:
        case Back(steps):
            return await _back(context, head, steps)
        case Step(step):
            return await references.at_step(context, record, head, step)
        case Moved(moves):
            return await references.before_moves(context, record, head, moves)
        case Ago() | Until() | Clock():
            then = parsed.when(context.clock())
            return await references.until(context, record, head, then)
        case _:
            assert isinstance(parsed, Upstream)
            return await references.upstream(context, record)


async def _own(
    context: Context, record: ThreadRecord, reference: Checkpoint
) -> Checkpoint:
    """A checkpoint that the caller holds, as it is stored now."""
    key = CheckpointKey(reference.family, reference.id)
    [found] = await context.backend.read([key])
    if found is None or found.seq != reference.seq:
        raise unknown(record.id, reference.id)
    return await _checked_visible(context, record, found)


async def _back(context: Context, head: Checkpoint, steps: int) -> Checkpoint:
    if steps == 0:
        return head
    page = await context.backend.scan(Ancestors(start=head, skip=steps, limit=1))
    if not page:
        raise NotFound(
            f"there are fewer than {steps} checkpoints before the head; see history()",
            thread=head.thread,
            reference=f"@~{steps}",
        )
    return page[0]


async def _named(context: Context, record: ThreadRecord, id_: str) -> Checkpoint:
    [found] = await context.backend.read([CheckpointKey(record.family, id_)])
    if found is not None:
        return await _checked_visible(context, record, found)
    return only_match(await _visible_matches(context, record, id_), id_, record.id)


async def _visible_matches(
    context: Context, record: ThreadRecord, prefix: str
) -> list[Checkpoint]:
    found: list[Checkpoint] = []
    after = ""
    while len(found) <= MOST_MATCHES:
        page = await context.backend.scan(
            Matches(prefix=prefix, family=record.family, after=after, limit=CHUNK)
        )
        found += [match for match in page if await is_visible(context, record, match)]
        if len(page) < CHUNK:
            break
        after = page[-1].id
    return found


def only_match(
    matches: list[Checkpoint], prefix: str, thread: str | None = None
) -> Checkpoint:
    """The single match of an id or prefix."""
    if not matches:
        raise unknown(thread, prefix)
    if len(matches) > 1:
        ids = [match.id for match in matches]
        how, what, hint = "begins", ids, "give more of the id"
        if len(set(ids)) == 1:
            what = [repr(match.thread) for match in matches]
            how, hint = "is in", "ask one of these threads for it, or its scope"
        raise NotFound(
            f"{prefix!r} is ambiguous: it {how} {', '.join(what[:MOST_MATCHES])}"
            f"{', ...' if len(ids) > MOST_MATCHES else ''}; {hint}",
            code="ambiguous",
            thread=thread,
            reference=prefix,
            matches=ids,
        )
    return matches[0]


async def _checked_visible(
    context: Context, record: ThreadRecord, found: Checkpoint
) -> Checkpoint:
    if await is_visible(context, record, found):
        return found
    raise NotFound(
        f"checkpoint {found.id!r} belongs to thread {found.thread!r},"
        f" not to {record.id!r}; ask that thread for it",
        code="foreign",
        thread=record.id,
        reference=found.id,
    )


def unknown(thread: str | None, reference: str) -> NotFound:
    """The error for a checkpoint that does not exist, or was removed."""
    where = "the store" if thread is None else f"thread {thread!r}"
    return NotFound(
        f"{where} has no checkpoint {reference!r}; see history()",
        thread=thread,
        reference=reference,
    )


async def is_visible(
    context: Context, record: ThreadRecord, checkpoint: Checkpoint
) -> bool:
    """True if the checkpoint was saved in the thread or inherited by forking."""
    if checkpoint.family != record.family:
        return False
    if checkpoint.thread_number == record.number:
        return True
    if record.head is not None and await is_ancestor(
        context, checkpoint, of=record.head
    ):
        return True
    # A fork that was rewound to before its fork point can still see the fork point.
    origin = await inherited(context, record) if record.forked_from else None
    return origin is not None and await is_ancestor(context, checkpoint, of=origin)


async def is_ancestor(
    context: Context, checkpoint: Checkpoint, *, of: Checkpoint
) -> bool:
    """True if the checkpoint is the other one, or one of its ancestors."""
    line = Ancestors(start=of, down_to_step=checkpoint.step, from_step=checkpoint.step)
    return checkpoint.seq in (c.seq for c in await context.backend.scan(line))


async def find_record(context: Context, thread: str) -> ThreadRecord | None:
    """A thread, ``None`` before its first save."""
    record = await context.find_thread(thread)
    return record if record and record.head else None


async def find_head(context: Context, thread: str) -> Checkpoint | None:
    """The head of a thread, ``None`` before its first save."""
    record = await find_record(context, thread)
    return record.head if record else None


async def find_step(context: Context, thread: str) -> int:
    """The step of the head, 0 before the first save."""
    head = await find_head(context, thread)
    return head.step if head else 0


async def find(
    context: Context, thread: str, *, label: str | None, tag: str | None
) -> Checkpoint | None:
    """The newest checkpoint with a label, a tag, or both."""
    if label is None and tag is None:
        raise Unstorable("find", "needs a label or a tag")
    query = HistoryQuery(limit=1, all=True, label=label, tag=tag)
    return next(iter(await history(context, thread, query)), None)


async def _newest_marked(
    context: Context, record: ThreadRecord, mark: Labelled | Tagged
) -> Checkpoint | None:
    async for checkpoint in _marked(context, record, mark, before=None):
        if await is_visible(context, record, checkpoint):
            return checkpoint
    return None


async def _marked(
    context: Context,
    record: ThreadRecord,
    mark: Labelled | Tagged,
    before: int | None,
) -> AsyncIterator[Checkpoint]:
    while True:
        page = await context.backend.scan(
            Marked(
                family=record.family,
                label=mark.label if isinstance(mark, Labelled) else None,
                tag=mark.tag if isinstance(mark, Tagged) else None,
                before=before,
                limit=CHUNK,
            )
        )
        for checkpoint in page:
            yield checkpoint
        before = page.cursor
        if before is None:
            return


async def history(
    context: Context, thread: str, query: HistoryQuery
) -> Page[Checkpoint]:
    """The checkpoints of a thread; an empty page if there is none."""
    checked_limit(query.limit)
    if query.order not in ("newest", "oldest"):
        raise Unstorable("order", f"is 'newest' or 'oldest', not {query.order!r}")
    if query == HistoryQuery(limit=query.limit):
        line = Ancestors(start=thread, limit=query.limit)
        return _page(list(await context.backend.scan(line)), query)
    record = await context.find_thread(thread)
    if record is None or record.head is None:
        return Page(())
    before = None
    if query.before is not None:
        before = await _behind(context, record, query.before)
    # The line is walked from the newest, so the oldest are known only at its end.
    limit = query.limit if query.order == "newest" else None
    if query.tag is not None or query.label is not None:
        found = await _filtered(context, record, query, before)
    elif query.all:
        found = await _everything(context, record, before, limit)
    else:
        found = await _line(context, before or record.head, before is not None, limit)
    return _page(found, query)


async def count(context: Context, thread: str) -> int:
    """The number of checkpoints in a thread's history, 0 before its first save."""
    [found] = await context.backend.scan(LineLength(thread))
    return found


async def _behind(
    context: Context, record: ThreadRecord, before: Reference | int
) -> Checkpoint:
    """The checkpoint for a reference or for the cursor of a page."""
    if not isinstance(before, int):
        return await resolve_in(context, record, before)
    at = Saves(family=record.family, before=before + 1, after=before - 1, limit=1)
    page = await context.backend.scan(at)
    if not page:
        raise unknown(record.id, f"cursor {before}")
    return await _checked_visible(context, record, page[0])


def _page(found: list[Checkpoint], query: HistoryQuery) -> Page[Checkpoint]:
    if query.order == "oldest":
        found.reverse()
    items = tuple(found[: query.limit])
    return Page(items, items[-1].seq if items and len(items) == query.limit else None)


async def _line(
    context: Context, start: Checkpoint, behind: bool, limit: int | None
) -> list[Checkpoint]:
    """Ancestors of a checkpoint, with itself unless ``behind`` it."""
    line = Ancestors(start=start, skip=int(behind), limit=limit)
    return list(await context.backend.scan(line))


async def _everything(
    context: Context,
    record: ThreadRecord,
    before: Checkpoint | None,
    limit: int | None,
) -> list[Checkpoint]:
    """All checkpoints saved in a thread, rewound or not, then those it inherited."""
    if before is not None and before.thread_number != record.number:
        return await _line(context, before, behind=True, limit=limit)
    own = Saves(
        family=record.family,
        thread=record.id,
        before=before.seq if before else None,
        limit=limit,
    )
    found = list(await context.backend.scan(own))
    rest = None if limit is None else limit - len(found)
    if record.forked_from is None or rest == 0:
        return found
    above = await inherited(context, record)
    return found + (await _line(context, above, False, rest) if above else [])


async def inherited(context: Context, record: ThreadRecord) -> Checkpoint | None:
    """The newest checkpoint that a fork did not save itself."""
    assert record.forked_from is not None
    key = CheckpointKey(record.family, record.forked_from.checkpoint)
    [origin] = await context.backend.read([key])
    if origin is not None:
        return origin
    # Retention removed the fork point; its ancestors are still on the line.
    assert record.head is not None
    for checkpoint in await context.backend.scan(Ancestors(start=record.head)):
        if checkpoint.thread_number != record.number:
            return checkpoint
    return None


async def _filtered(
    context: Context,
    record: ThreadRecord,
    query: HistoryQuery,
    before: Checkpoint | None,
) -> list[Checkpoint]:
    """Marked checkpoints, found by an index, if they belong to the thread or line."""
    mark = Labelled(query.label) if query.label is not None else Tagged(query.tag or "")
    limit = query.limit if query.order == "newest" else None
    found: list[Checkpoint] = []
    assert record.head is not None
    async for checkpoint in _marked(
        context, record, mark, before.seq if before else None
    ):
        if query.label is not None and query.tag not in (None, *checkpoint.tags):
            continue
        if await _belongs(context, record, checkpoint, all_=query.all):
            found.append(checkpoint)
        if limit is not None and len(found) == limit:
            break
    return found


async def _belongs(
    context: Context, record: ThreadRecord, checkpoint: Checkpoint, *, all_: bool
) -> bool:
    if all_:
        return await is_visible(context, record, checkpoint)
    assert record.head is not None
    return await is_ancestor(context, checkpoint, of=record.head)
