"""Searching the messages of conversations, and of other threads with messages.

A search first updates the index. The index only proposes where to look: the text of the
messages decides. Threads that are not indexed, and all threads where there is no usable
index, are read instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.records.conversations import KIND, PREFIX, thread_of
from holdfast._engine.search.index import SearchedThread, catch_up
from holdfast._engine.search.text import (
    FORM,
    GRAM,
    folded,
    prepared,
    shown_needle,
    snippet,
    words_of,
)
from holdfast._messages.transcript import role_of, text_of
from holdfast._port import Candidate, Candidates, ThreadKey, Threads
from holdfast._values.records import (
    Page,
    Progress,
    ThreadRecord,
    checked_limit,
    checked_name,
)
from holdfast.errors import Corrupt, Unstorable
from holdfast.messages import AnyMessage

# The number of threads in a page of candidates.
CHUNK = 50
# What a search lists and its limit counts.
Per = Literal["message", "conversation"]
# A cursor is the ``changed`` of a thread, and in these bits the position of a message.
POSITION_BITS = 32


class Match(msgspec.Struct, frozen=True):
    """A message that contains what was searched for, and its conversation.

    ``message`` is the message at ``position`` of the loaded conversation, ``snippet``
    its text around a match. ``thread`` is the name of the thread; if it is not
    a conversation, ``conversation`` is that name too.
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
    thread: str


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for, and in which conversations."""

    text: str
    kinds: tuple[str, ...] = (KIND,)
    agent: str | None = None
    owner: str | None = None
    conversation: str | None = None
    archived: bool | None = None
    per: Per = "message"
    limit: int | None = 20
    after: int | None = None

    def check(self) -> None:
        """Refuse what cannot be searched for."""
        checked_limit(self.limit)
        if type(self.text) is not str or not self.text:
            raise Unstorable("query", "must be text of at least one character")
        if self.per not in get_args(Per):
            text = f"must be one of {', '.join(get_args(Per))}, not {self.per!r}"
            raise Unstorable("per", text)
        for name, value in (("agent", self.agent), ("owner", self.owner)):
            if value is not None:
                checked_name(value, name)


async def search(
    context: Context, query: SearchQuery, progress: Progress | None = None
) -> Page[Match]:
    """The messages with all words of a query, in the conversations used last first."""
    query.check()
    return await _Search(context, query).run(progress)


async def words_found(
    context: Context, query: SearchQuery, words: Iterable[str]
) -> set[str]:
    """The words that a message contains where the query looks."""
    query.check()
    found: set[str] = set()
    for word in words:
        text = word if word.split() == [word] else f'"{word}"'
        if await search(context, replace(query, text=text, limit=1, after=None)):
            found.add(word)
    return found


class _Search:
    """One search in progress; ``found`` are the matches of its page."""

    def __init__(self, context: Context, query: SearchQuery) -> None:
        self.context, self.query = context, query
        words = words_of(query.text)
        self.needles = tuple(map(folded, words))
        self.found: list[Match] = []
        texts = map(prepared, words)
        self.texts = tuple(text for text in texts if len(text) >= GRAM)
        able = "search" in context.backend.abilities
        self.indexed = able and query.conversation is None and bool(self.texts)
        # The thread and the position of the last match of the page before.
        self.last: int | None = None
        self.position = 0
        if query.after is not None:
            self.last = query.after >> POSITION_BITS
            self.position = query.after & ((1 << POSITION_BITS) - 1)

    async def run(self, progress: Progress | None) -> Page[Match]:
        if self.indexed:
            query = self.query
            self.indexed = await catch_up(
                self.context, query.kinds, query.owner, query.agent, progress
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
        per_message = self.query.per == "message"
        # Nothing is before the first message, so the next page begins after the thread.
        position = self.found[-1].position if per_message else 0
        return thread.changed << POSITION_BITS | position

    async def _candidates(self, after: int | None) -> Page[Candidate]:
        query = self.query
        if query.conversation is not None:
            return await self._only(thread_of(query.conversation))
        return _merged([await self._of_kind(kind, after) for kind in query.kinds])

    async def _of_kind(self, kind: str, after: int | None) -> Page[Candidate]:
        query = self.query
        if self.indexed:
            try:
                return await self._proposed(kind, after)
            except Corrupt:
                # Continue without the index. If the threads are damaged too, reading
                # them raises again.
                self.indexed = False
                await self.context.backend.mend()
        threads = await self.context.backend.scan(
            Threads(
                kind=kind,
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
            self.last = thread.changed  # continue even if the thread has changed
        return Page((Candidate(thread),))

    async def _proposed(self, kind: str, after: int | None) -> Page[Candidate]:
        query = Candidates(
            texts=self.texts,
            kind=kind,
            form=FORM,
            owner=self.query.owner,
            agent=self.query.agent,
            after=after,
            limit=CHUNK,
        )
        return await self.context.backend.scan(query)

    async def _look(self, candidate: Candidate) -> None:
        """Collect the matches in a thread, its last messages first."""
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
                is_match = await self._try(conversation, position)
                if is_match and self._is_enough():
                    return

    def _is_enough(self) -> bool:
        is_full = len(self.found) == self.query.limit
        return is_full or self.query.per == "conversation"

    def _is_wanted(self, conversation: SearchedThread) -> bool:
        is_archived = conversation.values.get("archived", False)
        return self.query.archived in (None, is_archived)

    async def _try(self, conversation: SearchedThread, position: int) -> bool:
        message, thread = conversation.messages[position], conversation.thread
        title = conversation.values.get("title")
        text = text_of(message)
        whole = folded(text)
        if not all(needle in whole for needle in self.needles):
            return False
        needle = shown_needle(whole, self.query.text, self.needles)
        self.found.append(
            Match(
                conversation=thread.id.removeprefix(PREFIX),
                position=position,
                role=role_of(message),
                snippet=snippet(text, needle),
                message=await conversation.message(position),
                title=title if isinstance(title, str) else None,
                owner=thread.owner,
                agent=thread.agent,
                updated_at=conversation.known.head.saved_at,
                thread=thread.id,
            )
        )
        return True


def _merged(pages: Sequence[Page[Candidate]]) -> Page[Candidate]:
    """The candidates of all pages, last used first, up to where the shortest ends."""
    cursors = [page.cursor for page in pages if page.cursor is not None]
    end = max(cursors, default=None)
    found = [
        candidate
        for page in pages
        for candidate in page
        if end is None or candidate.thread.changed >= end
    ]
    found.sort(key=lambda candidate: -candidate.thread.changed)
    return Page(tuple(found), end)


async def _open(context: Context, thread: ThreadRecord) -> SearchedThread | None:
    """A thread with its messages, ``None`` if it was deleted meanwhile."""
    while True:
        conversation = SearchedThread(context, thread)
        try:
            await conversation.read("messages", "title", "archived")
        except Corrupt:
            # What was listed may have been removed since.
            [found] = await context.backend.read([ThreadKey(thread.id)])
            if found is None or found.head is None or found.number != thread.number:
                return None
            if found.head == thread.head:
                raise
            thread = found
        else:
            return conversation
