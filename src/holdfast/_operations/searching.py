"""Searching the messages of conversations, and keeping the index for it.

The index is derived data, off the path of a save: a search first brings it up to date.
It only proposes where to look; what it does not know, or cannot be asked, is looked
through instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import msgspec

from holdfast import _codec
from holdfast._backend import (
    Candidate,
    Candidates,
    Indexed,
    Indexing,
    IndexKey,
    Outdated,
    Stale,
    ThreadKey,
    Threads,
)
from holdfast._cache import Known
from holdfast._manifest import decode_manifest
from holdfast._operations.context import Context
from holdfast._records import Page, ThreadRecord, checked_limit, checked_name
from holdfast._rope import Rope, joined
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

Progress = Callable[[int, int], object]

KIND = "conversation"
PREFIX = "conversation:"
MESSAGES = "messages"
# Threads looked at before it is seen whether that was enough.
CHUNK = 50
# Characters indexed in one transaction: others cannot save meanwhile. A tenth of a
# second for prose, half a second for what looks random.
BATCH = 1 << 19
# A cursor is the ``changed`` of a conversation with a position in these bits.
POSITION_BITS = 32


class Match(msgspec.Struct, frozen=True):
    """A message in which the text was found, and the conversation it stands in.

    ``message`` is as it was stored, ``snippet`` its text around the first find.
    """

    conversation: str
    position: int
    role: str
    snippet: str
    message: dict[str, object]
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
        for name in ("agent", "owner", "conversation"):
            value = getattr(self, name)
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
        self.last, self.position = None, 0
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
            return await self._only(PREFIX + query.conversation)
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
            or (self.last is not None and thread.changed > self.last)
        ):
            return Page(())
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
        if conversation is None or not await self._is_wanted(conversation):
            return
        where = candidate.where
        if where is None or conversation.thread is not candidate.thread:
            where = (range(len(conversation.messages)),)
        end = len(conversation.messages)
        if candidate.thread.changed == self.last:
            end = min(end, self.position)
        for part in reversed(where):
            for position in range(min(part.stop, end) - 1, part.start - 1, -1):
                message = conversation.messages[position]
                text = text_of(message)
                if self.needle in folded(text):
                    await self._keep(conversation, position, text)
                if len(self.found) == self.query.limit:
                    return

    async def _is_wanted(self, conversation: _Conversation) -> bool:
        archived = self.query.archived
        if archived is None:
            return True
        return archived == (await conversation.value("archived") is True)

    async def _keep(
        self, conversation: _Conversation, position: int, text: str
    ) -> None:
        thread, message = conversation.thread, conversation.messages[position]
        title = await conversation.value("title")
        self.found.append(
            Match(
                conversation=thread.id.removeprefix(PREFIX),
                position=position,
                role=role_of(message),
                snippet=snippet(text, self.needle),
                # Nothing but a dict has any text.
                message=cast("dict[str, object]", message),
                title=title if isinstance(title, str) else None,
                owner=thread.owner,
                agent=thread.agent,
                updated_at=thread.updated_at,
            )
        )


class _Conversation:
    """The head of a conversation and those of its values that are asked for."""

    def __init__(self, context: Context, thread: ThreadRecord) -> None:
        assert thread.head is not None
        self.context, self.thread = context, thread
        # Not from the cache: what is searched is not what is worked on.
        self.known = Known(thread.head, decode_manifest(thread.head))
        self.messages: list[object] = []

    async def value(self, name: str) -> object:
        stored = self.known.manifest.values.get(name, b"null")
        if isinstance(stored, Rope):
            body = await self.context.body(self.known, name, stored)
            stored = joined(body, as_list=stored.is_list)
        return _codec.decode(stored)

    async def read_messages(self) -> None:
        found = await self.value(MESSAGES)
        if isinstance(found, list):
            self.messages = cast("list[object]", found)


async def _open(context: Context, thread: ThreadRecord) -> _Conversation | None:
    """A conversation with its messages, ``None`` if it is gone by now."""
    while True:
        conversation = _Conversation(context, thread)
        try:
            await conversation.read_messages()
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


async def compact(context: Context) -> None:
    """Give unused space back, and that of an index in too many small parts."""
    backend = context.backend
    if "search" in backend.abilities and await backend.is_indexed():
        await _Indexer(context, None).run(stretch=STRETCH)
    await backend.compact()


async def catch_up(
    context: Context,
    owner: str | None = None,
    agent: str | None = None,
    progress: Progress | None = None,
) -> bool:
    """Index what was changed since it was indexed; False if there is no sound index.

    What cannot be indexed now, in a store that is read-only, full or busy, is left for
    the next time.
    """
    query = Outdated(kind=KIND, form=FORM, owner=owner, agent=agent)
    try:
        await _Indexer(context, progress).run(query)
    except Corrupt:
        await context.backend.mend()
        return False
    except (Busy, Unsupported):
        return True
    except HoldfastError as error:
        if error.code not in {"disk_full", "io_error"}:
            raise
    return True
