"""Updating the search index. It can be rebuilt, and saves do not write to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TypeAlias

from holdfast._engine.context import Context
from holdfast._engine.search.batches import batches
from holdfast._engine.search.text import (
    FORM,
    STRETCH,
    Passage,
    count_filled,
    count_unchanged,
    divided,
    prepared,
)
from holdfast._engine.search.thread import read_messages
from holdfast._messages.transcript import text_of
from holdfast._port import (
    IndexBatch,
    Indexed,
    Indexing,
    Outdated,
    OutdatedCount,
    Scattered,
    Stale,
    Wait,
)
from holdfast._values.records import PIN, Page, Progress
from holdfast.errors import Busy, Corrupt, HoldfastError, Unsupported

# Characters indexed in one transaction, during which other writers wait: 0.05 seconds
# for prose, 0.5 seconds for text that looks random. A thread counts as some at least.
BATCH = 1 << 19
LEAST = 64
# The number of threads in a page of outdated ones, and about how many bytes of their
# states are read at once.
PAGE = 1000
AT_ONCE = 1 << 20

# How many of the first stretches of a thread are kept as they are.
CountKept: TypeAlias = Callable[[Indexed, Sequence[str]], int]


async def catch_up(context: Context, progress: Progress | None = None) -> bool:
    """Index the threads that changed since they were indexed; False if it is damaged.

    In a store that is read-only, busy or full, the rest is left to the next search.
    """
    try:
        with closing(_Indexer(context, count_unchanged, progress)) as indexer:
            await indexer.catch_up()
    except Corrupt:
        await context.backend.mend()
        return False
    except (Busy, Unsupported):
        pass
    except HoldfastError as error:
        if error.code not in {"disk_full", "io_error"}:
            raise
    return True


async def compact(context: Context) -> None:
    """Free unused space, after joining small stretches of the index."""
    await _tidy(context)
    await context.backend.compact()


async def scrub(context: Context) -> None:
    """Leave nothing of what was removed, in the index either."""
    await _tidy(context)
    await context.backend.scrub()


async def _tidy(context: Context) -> None:
    """Join small stretches, and drop those of threads that are gone."""
    if "search" in context.backend.abilities:
        try:
            with closing(_Indexer(context, _count_filled)) as indexer:
                await indexer.join_stretches()
        except Corrupt:
            await context.backend.mend()


def _count_filled(known: Indexed, texts: Sequence[str]) -> int:
    return min(count_filled(known), count_unchanged(known, texts))


class _Indexer:
    """Updates the index of some threads, a batch at a time."""

    def __init__(
        self, context: Context, count_kept: CountKept, progress: Progress | None = None
    ) -> None:
        self.context, self.count_kept, self.progress = context, count_kept, progress
        self.updates: list[Indexing] = []
        self.size = self.done = self.total = 0
        # The last change of which all threads are in the updates, or in the index.
        self.up_to: int | None = None
        # The backend may still be at the batch before, while the next one is read.
        self.wait: Wait | None = None

    async def catch_up(self) -> None:
        """Index what is outdated, the earliest change first.

        Every batch moves the change up to which the index is complete, and what was
        indexed of a page is not outdated any more, so a search that is killed is
        continued by the next one.
        """
        while True:
            query = Outdated(form=FORM, without=PIN, after=self.up_to, limit=PAGE)
            page = await self.context.backend.scan(query)
            if page.cursor is None:
                break
            if page and not self.total and self.progress is not None:
                await self._count()
            await self._index(page)
            self.up_to = page.cursor
            if not self.up_to:
                await self._commit()  # only makes the index
            elif len(page) < PAGE:
                break
        if self.up_to:
            await self._commit(is_last=True)

    async def _count(self) -> None:
        count = OutdatedCount(form=FORM, without=PIN)
        [self.total] = await self.context.backend.scan(count)

    async def join_stretches(self) -> None:
        """Index threads again that are in too many stretches."""
        after: int | None = None
        while True:
            query = Scattered(stretch=STRETCH, after=after, limit=PAGE)
            page = await self.context.backend.scan(query)
            await self._index(page)
            if self.updates:
                await self._commit()
            after = page.cursor
            if after is None:
                return

    async def _index(self, page: Page[Stale]) -> None:
        for group in batches(page, _state_size, AT_ONCE):
            heads = [stale.head for stale in group if stale.head is not None]
            found = iter(await read_messages(self.context, heads))
            for stale in group:
                messages = None if stale.head is None else next(found)
                for update in self._updates(stale, messages):
                    self.updates.append(update)
                    self.size += LEAST + sum(map(len, update.texts))
                    if self.size >= BATCH:
                        await self._commit()
                self.done += 1

    async def _commit(self, *, is_last: bool = False) -> None:
        updates, self.updates, self.size = tuple(self.updates), [], 0
        batch = IndexBatch(
            form=FORM, without=PIN, threads=updates, up_to=self.up_to, is_last=is_last
        )
        self.close()
        self.wait = await self.context.backend.index(batch)
        if self.progress is not None and self.total:
            self.progress(min(self.done, self.total), self.total)

    def close(self) -> None:
        """Wait for the batch that the backend may still be at."""
        wait, self.wait = self.wait, None
        if wait is not None:
            wait()

    def _updates(
        self, stale: Stale, messages: Sequence[object] | None
    ) -> Iterator[Indexing]:
        """The updates that bring the index of a thread up to date, a batch each.

        Before the last one the thread does not count as indexed. A thread that cannot
        be read is left as it is: a search that looks into it raises the error.
        """
        number, found = stale.number, stale.found
        if stale.is_gone:
            yield Indexing(number=number, found=found, becomes=None)
            return
        if messages is None:
            return
        texts = [prepared(text_of(message)) for message in messages]
        stretches = found.stretches[: self.count_kept(found, texts)]
        first = stretches[-1].last + 1 if stretches else 0
        for part, is_last in _parts(list(divided(texts, first))):
            stretches += tuple([passage.stretch for passage in part])
            becomes = Indexed(stale.changed if is_last else -1, FORM, stretches)
            new = tuple([passage.text for passage in part])
            yield Indexing(number=number, found=found, becomes=becomes, texts=new)
            found = becomes


def _state_size(stale: Stale) -> int:
    return stale.head.size if stale.head else 0


def _parts(passages: Sequence[Passage]) -> Iterator[tuple[Sequence[Passage], bool]]:
    """The passages in batches, each with whether it is the last; at least one."""
    if len(passages) <= 1:
        yield passages, True
        return
    parts = list(batches(passages, lambda passage: passage.stretch.size, BATCH))
    for number, part in enumerate(parts, 1):
        yield part, number >= len(parts)
