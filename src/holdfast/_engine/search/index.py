"""Keeping the index for searching: derived data, off the path of a save."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from holdfast._engine.cache import Known
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
from holdfast._values.manifest import decode_manifest
from holdfast._values.records import Progress, ThreadRecord
from holdfast.errors import Busy, Corrupt, HoldfastError, Unsupported
from holdfast.messages import AnyMessage, restored

# Characters indexed in one transaction: others cannot save meanwhile. Half a tenth of
# a second for prose, half a second for what looks random.
BATCH = 1 << 19


class Conversation:
    """The head of a conversation, read as far as it is needed."""

    def __init__(self, context: Context, thread: ThreadRecord) -> None:
        assert thread.head is not None
        self.context, self.thread = context, thread
        # Not from the cache: what is searched is not what is worked on.
        self.known = Known(thread.head, decode_manifest(thread.head))
        self.values: dict[str, Any] = {}

    @property
    def messages(self) -> list[object]:
        found = self.values.get("messages")
        return cast("list[object]", found) if isinstance(found, list) else []

    async def read(self, *names: str) -> None:
        self.values |= await read_values(self.context, self.known, names)

    async def message(self, position: int) -> AnyMessage:
        """A message as loading gives it; only dicts have a text and can be found."""
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
    """Index what has changed since it was indexed; False if the index is damaged.

    What cannot be indexed now, in a store that is read-only, busy or full, is left for
    the next time.
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
    """Give unused space back, also that of an index in too many small stretches."""
    if "search" in context.backend.abilities:
        try:
            await _Indexer(context, _count_filled).run([Scattered(STRETCH)])
        except Corrupt:
            await context.backend.mend()
    await context.backend.compact()


def _count_filled(known: Indexed, texts: Sequence[str]) -> int:
    return min(count_filled(known), count_unchanged(known, texts))


class _Indexer:
    """Brings the index of some threads up to date, a batch at a time.

    ``count_kept`` tells how many of the first stretches stay as they are.
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
        # What is gone is of no kind any more, and so in every page.
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
        # Before the thread: after it, this could be what a rival made of a newer one.
        [known] = await self.context.backend.read([IndexKey(stale.number)])
        found = known or Indexed()
        if stale.name is None:
            return [Indexing(number=stale.number, found=found, becomes=None)]
        try:
            conversation = await self._read(stale.name)
        except Corrupt:
            return []  # whoever looks for something in it will be told
        if conversation is None or conversation.thread.number != stale.number:
            return []
        return list(self._steps(conversation, found))

    async def _read(self, name: str) -> Conversation | None:
        thread = await self.context.find_thread(name)
        if thread is None or thread.head is None:
            return None
        conversation = Conversation(self.context, thread)
        await conversation.read("messages")
        return conversation

    def _steps(self, conversation: Conversation, found: Indexed) -> Iterator[Indexing]:
        """From what was found to the conversation as it is, not too much at a time.

        Before the last step, the conversation does not count as indexed.
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
    """Passages of a batch at a time, and whether they are the last; at least one."""
    start = size = 0
    for position, passage in enumerate(passages):
        if size >= BATCH:
            yield passages[start:position], False
            start, size = position, 0
        size += passage.stretch.size
    yield passages[start:], True
