"""Searching the messages of conversations, and keeping the index for it.

The index is derived data, off the path of a save: a search first brings it up to date.
It only proposes where to look; what it does not know, or cannot be asked, is looked
through instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from holdfast._backend import (
    Candidate,
    Candidates,
    Indexed,
    Indexing,
    IndexKey,
    Outdated,
    Query,
    Scattered,
    Stale,
    ThreadKey,
    Threads,
)
from holdfast._cache import Known
from holdfast._contents import whole
from holdfast._manifest import decode_manifest
from holdfast._operations.context import Context
from holdfast._operations.conversations import KIND, PREFIX, thread_of
from holdfast._operations.drafts import read_values
from holdfast._records import Page, ThreadRecord, checked_limit, checked_name
from holdfast._searching import (
    FORM,
    GRAM,
    STRETCH,
    count_filled,
    count_unchanged,
    divided,
    folded,
    prepared,
    snippet,
)
from holdfast._transcript import role_of, text_of
from holdfast.errors import Busy, Corrupt, HoldfastError, Unstorable, Unsupported
from holdfast.messages import AnyMessage, restored

Progress = Callable[[int, int], object]

# Threads looked at before it is seen whether that was enough.
CHUNK = 50
# Characters indexed in one transaction: others cannot save meanwhile. A tenth of a
# second for prose, half a second for what looks random.
BATCH = 1 << 19
# A cursor is the ``changed`` of a conversation with a position in these bits.
POSITION_BITS = 32


class Match(msgspec.Struct, frozen=True):
    """A message in which the text was found, and the conversation it stands in.

    ``message`` is as in the loaded conversation at this ``position``, ``snippet`` its
    text around the first place.
    """

    conversation: str
    position: int
    role: str
    snippet: str
    message: AnyMessage
    title: str | None
    owner: str | None
    agent: str | None
    updated_at: int


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for, and in which conversations."""

    text: str
    agent: str | None = None
    owner: str | None = None
    conversation: str | None = None
    archived: bool | None = None
    limit: int | None = 20
    after: int | None = None

    def check(self) -> None:
        """Refuse what cannot be searched for."""
        checked_limit(self.limit)
        if type(self.text) is not str or not self.text:
            raise Unstorable("query", "must be text of at least one character")
        for name, value in (("agent", self.agent), ("owner", self.owner)):
            if value is not None:
                checked_name(value, name)


async def search(
    context: Context, query: SearchQuery, progress: Progress | None = None
) -> Page[Match]:
    """The messages that hold a text, in the conversations used last first."""
    query.check()
    return await _Search(context, query).run(progress)


class _Search:
    def __init__(self, context: Context, query: SearchQuery) -> None:
        self.context, self.query = context, query
        self.needle = folded(query.text)
        self.found: list[Match] = []
        text = prepared(query.text)
        able = "search" in context.backend.abilities
        self.indexed = able and query.conversation is None and len(text) >= GRAM
        # The cursor is the place of the last match of the page before.
        self.last: int | None = None
        self.position = 0
        if query.after is not None:
            self.last = query.after >> POSITION_BITS
            self.position = query.after & ((1 << POSITION_BITS) - 1)

    async def run(self, progress: Progress | None) -> Page[Match]:
        if self.indexed:
            query = self.query
            self.indexed = await catch_up(
                self.context, query.owner, query.agent, progress
            )
        after = None if self.last is None else self.last + 1
        while True:
            page = await self._candidates(after)
            for candidate in page:
                await self._look(candidate)
                if len(self.found) == self.query.limit:
                    return Page(tuple(self.found), self._cursor(candidate.thread))
            after = page.cursor
            if after is None:
                return Page(tuple(self.found))

    def _cursor(self, thread: ThreadRecord) -> int:
        return thread.changed << POSITION_BITS | self.found[-1].position

    # --- where to look ----------------------------------------------------------------

    async def _candidates(self, after: int | None) -> Page[Candidate]:
        query = self.query
        if query.conversation is not None:
            return await self._only(thread_of(query.conversation))
        if self.indexed:
            try:
                return await self._proposed(after)
            except Corrupt:
                # Perhaps it is only the index; if not, it is met again below.
                self.indexed = False
                await self.context.backend.mend()
        threads = await self.context.backend.scan(
            Threads(
                kind=KIND,
                owner=query.owner,
                agent=query.agent,
                after=after,
                limit=CHUNK,
            )
        )
        return Page(tuple(map(Candidate, threads)), threads.cursor)

    async def _only(self, name: str) -> Page[Candidate]:
        thread = await self.context.find_thread(name)
        query = self.query
        if (
            thread is None
            or thread.head is None
            or query.owner not in (None, thread.owner)
            or query.agent not in (None, thread.agent)
        ):
            return Page(())
        if self.last is not None:
            self.last = thread.changed  # it goes on, even if the thread went on too
        return Page((Candidate(thread),))

    async def _proposed(self, after: int | None) -> Page[Candidate]:
        query = Candidates(
            text=prepared(self.query.text),
            kind=KIND,
            form=FORM,
            owner=self.query.owner,
            agent=self.query.agent,
            after=after,
            limit=CHUNK,
        )
        return await self.context.backend.scan(query)

    # --- looking ----------------------------------------------------------------------

    async def _look(self, candidate: Candidate) -> None:
        """Collect the matches of a conversation, its last messages first."""
        conversation = await _open(self.context, candidate.thread)
        if conversation is None or not self._is_wanted(conversation):
            return
        end = len(conversation.messages)
        where = candidate.where
        if where is None or conversation.thread is not candidate.thread:
            where = (range(end),)
        if candidate.thread.changed == self.last:
            end = min(end, self.position)
        for part in reversed(where):
            for position in range(min(part.stop, end) - 1, part.start - 1, -1):
                await self._try(conversation, position)
                if len(self.found) == self.query.limit:
                    return

    def _is_wanted(self, conversation: _Conversation) -> bool:
        is_archived = conversation.values.get("archived", False)
        return self.query.archived in (None, is_archived)

    async def _try(self, conversation: _Conversation, position: int) -> None:
        message, thread = conversation.messages[position], conversation.thread
        text = text_of(message)
        if self.needle not in folded(text):
            return
        self.found.append(
            Match(
                conversation=thread.id.removeprefix(PREFIX),
                position=position,
                role=role_of(message),
                snippet=snippet(text, self.needle),
                message=await conversation.message(position),
                title=conversation.values.get("title"),
                owner=thread.owner,
                agent=thread.agent,
                updated_at=conversation.known.head.saved_at,
            )
        )


class _Conversation:
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


async def _open(context: Context, thread: ThreadRecord) -> _Conversation | None:
    """A conversation with its messages, ``None`` if it is gone by now."""
    while True:
        conversation = _Conversation(context, thread)
        try:
            await conversation.read("messages", "title", "archived")
        except Corrupt:
            # Perhaps it was only removed since it was listed.
            [found] = await context.backend.read([ThreadKey(thread.id)])
            if found is None or found.head is None or found.number != thread.number:
                return None
            if found.head == thread.head:
                raise
            thread = found
        else:
            return conversation


# --- the index ------------------------------------------------------------------------


async def catch_up(
    context: Context,
    owner: str | None = None,
    agent: str | None = None,
    progress: Progress | None = None,
) -> bool:
    """Index what has changed since it was indexed; False if the index is damaged.

    What cannot be indexed now, in a store that is read-only, busy or full, is left for
    the next time.
    """
    query = Outdated(kind=KIND, form=FORM, owner=owner, agent=agent)
    try:
        await _Indexer(context, count_unchanged).run(query, progress)
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
            await _Indexer(context, _count_filled).run(Scattered(STRETCH))
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

    async def run(self, query: Query[Stale], progress: Progress | None = None) -> None:
        threads = await self.context.backend.scan(query)
        for done, thread in enumerate(threads, 1):
            await self._add(thread)
            if self.size >= BATCH or done == len(threads):
                await self.context.backend.index(self.updates)
                self.updates, self.size = [], 0
                if progress is not None:
                    progress(done, len(threads))

    async def _add(self, stale: Stale) -> None:
        # Before the thread: after it, this could be what a rival made of a newer one.
        [found] = await self.context.backend.read([IndexKey(stale.number)])
        update = await self._update(stale, found or Indexed())
        if update is not None:
            self.updates.append(update)
            self.size += sum(map(len, update.texts))

    async def _update(self, stale: Stale, found: Indexed) -> Indexing | None:
        if stale.name is None:
            return Indexing(number=stale.number, found=found, becomes=None)
        thread = await self.context.find_thread(stale.name)
        if thread is None or thread.head is None or thread.number != stale.number:
            return None
        conversation = _Conversation(self.context, thread)
        try:
            await conversation.read("messages")
        except Corrupt:
            return None  # whoever looks for something in it will be told
        texts = [prepared(text_of(message)) for message in conversation.messages]
        kept = found.stretches[: self.count_kept(found, texts)]
        first = kept[-1].last + 1 if kept else 0
        passages = list(divided(texts, first))
        stretches = (*kept, *(passage.stretch for passage in passages))
        return Indexing(
            number=thread.number,
            found=found,
            becomes=Indexed(thread.changed, FORM, stretches),
            texts=tuple(passage.text for passage in passages),
        )
