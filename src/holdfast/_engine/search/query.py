"""Searching the messages of conversations, and of other threads with messages.

A search first updates the index. The index only proposes where to look: the text of the
messages decides. Threads that are not indexed, and all threads where there is no usable
index, are read instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil
from typing import Literal, TypedDict, get_args

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.records.conversations import KIND, PREFIX, thread_of
from holdfast._engine.search.batches import batches
from holdfast._engine.search.index import catch_up
from holdfast._engine.search.text import (
    FORM,
    GRAM,
    folded,
    prepared,
    shown_needle,
    snippet,
    words_of,
)
from holdfast._engine.search.thread import SearchedThread, fetch_messages
from holdfast._messages.transcript import role_of, text_of
from holdfast._port import Candidate, Candidates, ThreadKey, Threads
from holdfast._values.arguments import check_progress, checked_flag
from holdfast._values.limits import LONGEST_QUERY
from holdfast._values.records import (
    PIN,
    Page,
    Progress,
    ThreadRecord,
    check_cursor,
    checked_limit,
    checked_name,
)
from holdfast.errors import Corrupt, Unstorable
from holdfast.messages import AnyMessage

# The number of threads in a page of candidates, and about how many bytes of their
# states are read at once.
CHUNK, LARGEST_CHUNK = 50, 1600
AT_ONCE = 1 << 20
# A text that counts as frequent has at least one match in so many threads.
SELDOM = 25
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


class SearchOptions(TypedDict, total=False):
    """The place to search, and the page of the matches to return."""

    agent: str | None
    owner: str | None
    conversation: str | None
    archived: bool | None
    per: Per
    limit: int | None
    after: int | None


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The text to look for, and the threads to look in."""

    text: str
    # Without a kind: all threads but the pins of agents' checkpoints.
    kind: str | None = KIND
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
        check_cursor(self.after)
        if self.archived is not None:
            checked_flag(self.archived, "archived")
        if type(self.text) is not str or not self.text:
            raise Unstorable("query", "must be text of at least one character")
        if len(self.text) > LONGEST_QUERY:
            text = (
                f"is longer than {LONGEST_QUERY:,} characters; search for fewer words"
            )
            raise Unstorable("query", text)
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
    check_progress(progress)
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
        # The number of threads in a page of candidates. It grows with the pages: for
        # each the index is asked for all matches.
        self.chunk = CHUNK
        # How many threads were read that the index had not proposed.
        self.looked = 0
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
            self.indexed = await catch_up(self.context, progress)
        after = None if self.last is None else self.last + 1
        while True:
            page = await self._candidates(after)
            for group in self._groups(page):
                last = await self._look_into(group)
                if last is not None:
                    return Page(tuple(self.found), self._cursor(last))
            after = page.cursor
            if after is None:
                return Page(tuple(self.found))
            self.chunk = min(2 * self.chunk, LARGEST_CHUNK)

    def _groups(self, page: Page[Candidate]) -> Iterator[Sequence[Candidate]]:
        """The candidates whose messages are read at once: no more than are needed."""
        limit = self.query.limit
        missing = CHUNK if limit is None else limit - len(self.found)

        def size(candidate: Candidate) -> int:
            head = candidate.thread.head
            return max(head.size if head else 0, ceil(AT_ONCE / missing))

        return batches(page, size, AT_ONCE)

    async def _look_into(self, group: Sequence[Candidate]) -> ThreadRecord | None:
        """Look into some threads; gives the one with which the page was full."""
        context = self.context
        opened = [SearchedThread(context, candidate.thread) for candidate in group]
        await fetch_messages(context, opened)
        for candidate, thread in zip(group, opened, strict=True):
            self.looked += candidate.where is None
            await self._look(candidate, thread)
            if len(self.found) == self.query.limit:
                return candidate.thread
        return None

    def _cursor(self, thread: ThreadRecord) -> int:
        per_message = self.query.per == "message"
        # Nothing is before the first message, so the next page begins after the thread.
        position = self.found[-1].position if per_message else 0
        return thread.changed << POSITION_BITS | position

    async def _candidates(self, after: int | None) -> Page[Candidate]:
        query = self.query
        if query.conversation is not None:
            return await self._only(thread_of(query.conversation))
        if self.indexed:
            try:
                return await self._proposed(after)
            except Corrupt:
                # Continue without the index. If the threads are damaged too, reading
                # them raises again.
                self.indexed = False
                await self.context.backend.mend()
        threads = await self.context.backend.scan(
            Threads(
                kind=query.kind,
                without=PIN,
                owner=query.owner,
                agent=query.agent,
                after=after,
                limit=self.chunk,
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

    async def _proposed(self, after: int | None) -> Page[Candidate]:
        query = Candidates(
            texts=self.texts,
            form=FORM,
            kind=self.query.kind,
            without=PIN,
            owner=self.query.owner,
            agent=self.query.agent,
            after=after,
            limit=self.chunk,
            quick=self._is_promising(),
        )
        return await self.context.backend.scan(query)

    def _is_promising(self) -> bool:
        """True if the texts may be as frequent here as they are elsewhere."""
        is_first = self.chunk == CHUNK
        is_seldom = self.looked > SELDOM * (len(self.found) + 1)
        return is_first or (bool(self.found) and not is_seldom)

    async def _look(self, candidate: Candidate, opened: SearchedThread) -> None:
        """Collect the matches in a thread, its last messages first."""
        conversation = await _read(opened)
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


async def _read(opened: SearchedThread) -> SearchedThread | None:
    """A thread with its messages, ``None`` if it was deleted meanwhile."""
    while True:
        try:
            await opened.read("messages", "title", "archived")
        except Corrupt:
            # What was listed may have been removed since.
            context, thread = opened.context, opened.thread
            [found] = await context.backend.read([ThreadKey(thread.id)])
            if found is None or found.head is None or found.number != thread.number:
                return None
            if found.head == thread.head:
                raise
            opened = SearchedThread(context, found)
        else:
            return opened
