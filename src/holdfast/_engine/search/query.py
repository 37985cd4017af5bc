"""Searching the messages of conversations, and of threads that are like them.

A search first brings the index up to date, which only proposes where to look; what it
does not know, or where it cannot be asked, everything is looked through instead.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.records.conversations import KIND, PREFIX, thread_of
from holdfast._engine.search.index import Conversation, catch_up
from holdfast._engine.search.text import FORM, GRAM, folded, prepared, snippet
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

# Threads looked at before it is seen whether that was enough.
CHUNK = 50
# A cursor is the ``changed`` of a conversation with a position in these bits.
POSITION_BITS = 32


class Match(msgspec.Struct, frozen=True):
    """A message in which the text was found, and the conversation it stands in.

    ``message`` is as in the loaded conversation at this ``position``, ``snippet`` its
    text around the first place. ``thread`` is the name of the thread; one that is no
    conversation is called ``conversation`` by that name as well.
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
        return thread.changed << POSITION_BITS | self.found[-1].position

    # --- where to look ----------------------------------------------------------------

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
                # Perhaps it is only the index; if not, it is met again below.
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
            self.last = thread.changed  # it goes on, even if the thread went on too
        return Page((Candidate(thread),))

    async def _proposed(self, kind: str, after: int | None) -> Page[Candidate]:
        query = Candidates(
            text=prepared(self.query.text),
            kind=kind,
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

    def _is_wanted(self, conversation: Conversation) -> bool:
        is_archived = conversation.values.get("archived", False)
        return self.query.archived in (None, is_archived)

    async def _try(self, conversation: Conversation, position: int) -> None:
        message, thread = conversation.messages[position], conversation.thread
        title = conversation.values.get("title")
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
                title=title if isinstance(title, str) else None,
                owner=thread.owner,
                agent=thread.agent,
                updated_at=conversation.known.head.saved_at,
                thread=thread.id,
            )
        )


def _merged(pages: Sequence[Page[Candidate]]) -> Page[Candidate]:
    """The candidates of all pages, last used first, as far as every page reaches."""
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


async def _open(context: Context, thread: ThreadRecord) -> Conversation | None:
    """A conversation with its messages, ``None`` if it is gone by now."""
    while True:
        conversation = Conversation(context, thread)
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
