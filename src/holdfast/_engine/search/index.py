"""Updating the search index. It can be rebuilt, and saves do not write to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.search.text import (
    FORM,
    STRETCH,
    Passage,
    count_filled,
    count_unchanged,
    divided,
    prepared,
)
from holdfast._engine.threads.drafts import read_values
from holdfast._messages.attachments import whole
from holdfast._messages.transcript import text_of
from holdfast._port import (
    Indexed,
    Indexing,
    IndexKey,
    Outdated,
    Query,
    Scattered,
    Stale,
)
from holdfast._values.records import Progress, ThreadRecord
from holdfast.errors import Busy, Corrupt, HoldfastError, Unsupported
from holdfast.messages import AnyMessage, restored

# Characters indexed in one transaction, during which other writers wait: 0.05 seconds
# for prose, 0.5 seconds for text that looks random.
BATCH = 1 << 19


class SearchedThread:
    """The head of a thread with messages; its values are read as they are needed."""

    def __init__(self, context: Context, thread: ThreadRecord) -> None:
        assert thread.head is not None
        self.context, self.thread = context, thread
        # The cache is left to the threads that the caller works on.
        self.known = OpenedCheckpoint.of(thread.head)
        self.values: dict[str, Any] = {}

    @property
    def messages(self) -> list[object]:
        """The messages, once they are read."""
        found = self.values.get("messages")
        return cast("list[object]", found) if isinstance(found, list) else []

    async def read(self, *names: str) -> None:
        """Read some of the values."""
        self.values |= await read_values(self.context, self.known, names)

    async def message(self, position: int) -> AnyMessage:
        """A message as `load` returns it, with its attachments."""
        message = cast("dict[str, Any]", self.messages[position])
        if "attachments" in message and "contents" not in self.values:
            await self.read("content_ids", "contents")
        return restored(*whole({**self.values, "messages": [message]}))


async def catch_up(
    context: Context,
    kinds: Sequence[str],
    owner: str | None = None,
    agent: str | None = None,
    progress: Progress | None = None,
) -> bool:
    """Index the threads that changed since they were indexed; False if it is damaged.

    In a store that is read-only, busy or full, the rest is left to the next search.
    """
    queries = [
        Outdated(kind=kind, form=FORM, owner=owner, agent=agent) for kind in kinds
    ]
    try:
        await _Indexer(context, count_unchanged).run(queries, progress)
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
    if "search" in context.backend.abilities:
        try:
            await _Indexer(context, _count_filled).run([Scattered(STRETCH)])
        except Corrupt:
            await context.backend.mend()
    await context.backend.compact()


def _count_filled(known: Indexed, texts: Sequence[str]) -> int:
    return min(count_filled(known), count_unchanged(known, texts))


class _Indexer:
    """Updates the index of some threads, a batch at a time.

    ``count_kept`` gives how many of the first stretches are kept as they are.
    """

    def __init__(
        self, context: Context, count_kept: Callable[[Indexed, Sequence[str]], int]
    ) -> None:
        self.context, self.count_kept = context, count_kept
        self.updates: list[Indexing] = []
        self.size = 0

    async def run(
        self, queries: Sequence[Query[Stale]], progress: Progress | None = None
    ) -> None:
        pages = [await self.context.backend.scan(query) for query in queries]
        # A deleted thread has no kind, so every page lists it: take each once.
        threads = dict.fromkeys(stale for page in pages for stale in page)
        for done, thread in enumerate(threads, 1):
            for update in await self._updates(thread):
                self.updates.append(update)
                self.size += sum(map(len, update.texts))
                if self.size >= BATCH:
                    await self._commit(progress, done - 1, len(threads))
        if threads:
            await self._commit(progress, len(threads), len(threads))

    async def _commit(self, progress: Progress | None, done: int, total: int) -> None:
        updates, self.updates, self.size = self.updates, [], 0
        if updates:
            await self.context.backend.index(updates)
        if progress is not None:
            progress(done, total)

    async def _updates(self, stale: Stale) -> list[Indexing]:
        # Read the index before the thread. In the other order a concurrent writer could
        # index a newer state in between, and this one would replace it by an older.
        [known] = await self.context.backend.read([IndexKey(stale.number)])
        found = known or Indexed()
        if stale.name is None:
            return [Indexing(number=stale.number, found=found, becomes=None)]
        try:
            conversation = await self._read(stale.name)
        except Corrupt:
            return []  # a search that looks into this thread raises it
        if conversation is None or conversation.thread.number != stale.number:
            return []
        return list(self._steps(conversation, found))

    async def _read(self, name: str) -> SearchedThread | None:
        thread = await self.context.find_thread(name)
        if thread is None or thread.head is None:
            return None
        conversation = SearchedThread(self.context, thread)
        await conversation.read("messages")
        return conversation

    def _steps(
        self, conversation: SearchedThread, found: Indexed
    ) -> Iterator[Indexing]:
        """The updates that bring the index of a thread up to date, a batch each.

        Before the last one the thread does not count as indexed.
        """
        thread = conversation.thread
        texts = [prepared(text_of(message)) for message in conversation.messages]
        stretches = found.stretches[: self.count_kept(found, texts)]
        first = stretches[-1].last + 1 if stretches else 0
        for part, is_last in _parts(list(divided(texts, first))):
            stretches += tuple(passage.stretch for passage in part)
            becomes = Indexed(thread.changed if is_last else -1, FORM, stretches)
            yield Indexing(
                number=thread.number,
                found=found,
                becomes=becomes,
                texts=tuple(passage.text for passage in part),
            )
            found = becomes


def _parts(passages: Sequence[Passage]) -> Iterator[tuple[Sequence[Passage], bool]]:
    """The passages in batches, each with whether it is the last; at least one."""
    start = size = 0
    for position, passage in enumerate(passages):
        if size >= BATCH:
            yield passages[start:position], False
            start, size = position, 0
        size += passage.stretch.size
    yield passages[start:], True
