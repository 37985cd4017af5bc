"""A store's conversations through both doors."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypedDict, Unpack

from holdfast._api.runner import Passage
from holdfast._api.thread import AsyncThread, Thread
from holdfast._engine.context import Context
from holdfast._engine.records import conversations
from holdfast._engine.records.conversations import KIND, ListQuery, thread_of
from holdfast._engine.search import query as searching
from holdfast._engine.search.query import Match, SearchQuery
from holdfast._engine.threads.lineage import Reference
from holdfast._engine.upkeep.prune import prune_conversations
from holdfast._messages.attachments import kept
from holdfast._messages.repair import How
from holdfast._port import Pruned, Start, run
from holdfast._values.records import Checkpoint, Page, Progress
from holdfast._values.reference import HEAD
from holdfast.conversations import Conversation, Counter, Summary
from holdfast.messages import AnyMessage
from holdfast.recorder import AsyncRecorder, Options, Recorder
from holdfast.retention import Retention

# Inside the classes below, `list` is a method.
Window = list[AnyMessage]

START = Start(kind=KIND)


class About(TypedDict, total=False):
    """What can be said about a conversation beside its messages."""

    title: str | None
    summary: str | None
    context: dict[str, Any]
    tags: list[str]
    archived: bool
    budget: int | None
    metadata: dict[str, Any]


class Where(TypedDict, total=False):
    """Where to search, and which page of what is found."""

    agent: str | None
    owner: str | None
    conversation: str | None
    archived: bool | None
    limit: int | None
    after: int | None


def begun(
    id_: str | None,
    owner: str | None,
    agent: str | None,
    messages: Sequence[AnyMessage],
    about: About,
) -> Conversation:
    """A conversation that is not in the store yet."""
    return Conversation(
        id=id_ or "", owner=owner, agent=agent, messages=list(messages), **about
    )


def sessions(
    idle: timedelta | None, per_owner: int | None, at_most: float | None
) -> Retention:
    """What of the conversations shall be kept."""
    return Retention(idle=idle, threads_per_owner=per_owner, at_most=at_most)


class Conversations:
    """A store's conversations; ``store.conversations``.

    A conversation is the thread ``conversation:<id>``: it has its history, can be
    forked and rewound, and a session is nothing but one with an owner.
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    def thread(self, id: str) -> Thread:  # noqa: A002 - public name
        """The thread of a conversation, for its history, forks and rewinds."""
        return Thread(self._context, thread_of(id), START)

    # --- saving -----------------------------------------------------------------------

    def create(
        self,
        id: str | None = None,  # noqa: A002 - public name
        *,
        owner: str | None = None,
        agent: str | None = None,
        messages: Sequence[AnyMessage] = (),
        **about: Unpack[About],
    ) -> Conversation:
        """A new conversation; `Conflict` if the id is in use, one is made without."""
        new = begun(id, owner, agent, messages, about)
        return run(conversations.create(self._context, new))

    def get_or_create(
        self,
        user_id: str,
        id: str | None = None,  # noqa: A002 - public name
        *,
        agent: str | None = None,
        **about: Unpack[About],
    ) -> Conversation:
        """A user's conversation, made if it is not there; another user's is not found.

        What is said ``about`` it goes into a new one only.
        """
        wanted = begun(id, user_id, agent, (), about)
        return run(conversations.get_or_create(self._context, wanted))

    def add(
        self,
        id: str,  # noqa: A002 - public name
        *messages: AnyMessage,
        owner: str | None = None,
    ) -> Checkpoint:
        """Append messages; costs what they take, however long the conversation is."""
        operation = conversations.add(self._context, id, kept(messages), owner=owner)
        return run(operation)

    def save(self, conversation: Conversation) -> Conversation:
        """Save a whole conversation and give it back.

        One that was loaded is only saved on what it was loaded from: where another
        came first, `Conflict` is raised. One made by hand replaces what is there.
        """
        return run(conversations.save(self._context, conversation))

    def update(self, id: str, **about: Unpack[About]) -> Checkpoint:  # noqa: A002
        """Set title, summary, context, tags and so on; the messages stay untouched."""
        values = conversations.as_values(about)
        return run(conversations.update(self._context, id, values))

    def archive(self, id: str, *, archived: bool = True) -> Checkpoint:  # noqa: A002
        """Put a conversation away, or take it back out."""
        return self.update(id, archived=archived)

    def auto_title(self, id: str) -> str | None:  # noqa: A002 - public name
        """Title a conversation by its first user message, unless it has a title."""
        return run(conversations.auto_title(self._context, id))

    # --- loading ----------------------------------------------------------------------

    def load(
        self,
        id: str,  # noqa: A002 - public name
        ref: Reference = HEAD,
        *,
        owner: str | None = None,
        repair: How | None = None,
    ) -> Conversation:
        """A conversation as it is, or as it was at a checkpoint.

        With ``owner`` another user's is not found. ``repair`` makes a transcript that
        was cut in a tool batch valid again: ``"interrupted"`` answers an open call
        with that word, ``"drop"`` takes it out, ``"propose"`` too and hands it back;
        what was done is told in ``repairs`` and saved only if you save it.
        """
        operation = conversations.load(
            self._context, id, ref, owner=owner, repair=repair
        )
        return run(operation)

    def find(self, id: str, *, owner: str | None = None) -> Conversation | None:  # noqa: A002
        """A conversation, ``None`` if there is none."""
        return run(conversations.find(self._context, id, owner=owner))

    def latest_safe(self, id: str) -> Checkpoint | None:  # noqa: A002 - public name
        """The newest checkpoint at which every tool call was answered."""
        return run(conversations.latest_safe(self._context, id))

    def context_window(
        self,
        id: str,  # noqa: A002 - public name
        budget: int | None = None,
        *,
        count: Counter | None = None,
    ) -> Window:
        """The system messages and the newest others that fit into so many tokens."""
        return self.load(id).context_window(budget, count=count)

    def list(
        self,
        *,
        agent: str | None = None,
        owner: str | None = None,
        archived: bool | None = None,
        tag: str | None = None,
        limit: int | None = 100,
        after: int | None = None,
    ) -> Page[Summary]:
        """Conversations without their messages, last used first."""
        query = ListQuery(
            agent=agent,
            owner=owner,
            archived=archived,
            tag=tag,
            limit=limit,
            after=after,
        )
        return run(conversations.summaries(self._context, query))

    summaries = list  # noqa: A003 - this one is meant

    def search(
        self, query: str, *, progress: Progress | None = None, **where: Unpack[Where]
    ) -> Page[Match]:
        """The messages that hold a text in any case, newest first; as `Store.search`.

        ``agent``, ``owner``, ``conversation`` and ``archived`` say in which
        conversations to look, ``limit`` and ``after`` page, and ``progress`` is told
        how far the index has caught up.
        """
        wanted = SearchQuery(text=query, **where)
        return run(searching.search(self._context, wanted, progress))

    # --- recording --------------------------------------------------------------------

    def recorder(self, id: str, **options: Unpack[Options]) -> Recorder:  # noqa: A002
        """What an agent's loop tells of its steps, and what resumes it.

        ``save`` is the strategy that says when to save, ``repair`` what becomes of a
        call that was cut off, ``system`` the text that replaces the stored system
        prompt; ``owner`` and ``agent`` are those of a new conversation.
        """
        return Recorder(self._context, id, **options)

    # --- removing ---------------------------------------------------------------------

    def delete(self, *ids: str, owner: str | None = None) -> int:
        """Delete conversations, with ``owner`` only that user's; returns how many."""
        return run(conversations.delete(self._context, ids, owner))

    def prune(
        self,
        *,
        idle: timedelta | None = None,
        per_owner: int | None = None,
        at_most: float | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Drop sessions not used for a time, and all but the newest of each owner.

        To have it done after saves, at most once in a while, open the store with
        ``retention=Retention(kinds=("conversation",), ...)``.
        """
        policy = sessions(idle, per_owner, at_most)
        return run(prune_conversations(self._context, policy, dry_run=dry_run))


class AsyncConversations:
    """As `Conversations`, awaited."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        self._context = passage.context
        self._saving = passage.saving

    def thread(self, id: str) -> AsyncThread:  # noqa: A002 - public name
        return AsyncThread(self._passage, thread_of(id), START)

    # --- saving -----------------------------------------------------------------------

    async def create(
        self,
        id: str | None = None,  # noqa: A002 - public name
        *,
        owner: str | None = None,
        agent: str | None = None,
        messages: Sequence[AnyMessage] = (),
        **about: Unpack[About],
    ) -> Conversation:
        new = begun(id, owner, agent, messages, about)
        return await self._passage.run(conversations.create(self._context, new))

    async def get_or_create(
        self,
        user_id: str,
        id: str | None = None,  # noqa: A002 - public name
        *,
        agent: str | None = None,
        **about: Unpack[About],
    ) -> Conversation:
        wanted = begun(id, user_id, agent, (), about)
        operation = conversations.get_or_create(self._context, wanted)
        return await self._passage.run(operation)

    async def add(
        self,
        id: str,  # noqa: A002 - public name
        *messages: AnyMessage,
        owner: str | None = None,
    ) -> Checkpoint:
        lane, stored = thread_of(id), kept(messages)
        operation = conversations.add(self._saving, id, stored, owner=owner)
        return await self._passage.save(operation, lane)

    async def save(self, conversation: Conversation) -> Conversation:
        return await self._passage.run(conversations.save(self._context, conversation))

    async def update(self, id: str, **about: Unpack[About]) -> Checkpoint:  # noqa: A002
        lane, values = thread_of(id), conversations.as_values(about)
        operation = conversations.update(self._saving, id, values)
        return await self._passage.save(operation, lane)

    async def archive(self, id: str, *, archived: bool = True) -> Checkpoint:  # noqa: A002
        return await self.update(id, archived=archived)

    async def auto_title(self, id: str) -> str | None:  # noqa: A002 - public name
        return await self._passage.run(conversations.auto_title(self._context, id))

    # --- loading ----------------------------------------------------------------------

    async def load(
        self,
        id: str,  # noqa: A002 - public name
        ref: Reference = HEAD,
        *,
        owner: str | None = None,
        repair: How | None = None,
    ) -> Conversation:
        operation = conversations.load(
            self._context, id, ref, owner=owner, repair=repair
        )
        return await self._passage.run(operation)

    async def find(self, id: str, *, owner: str | None = None) -> Conversation | None:  # noqa: A002
        return await self._passage.run(
            conversations.find(self._context, id, owner=owner)
        )

    async def latest_safe(self, id: str) -> Checkpoint | None:  # noqa: A002
        return await self._passage.run(conversations.latest_safe(self._context, id))

    async def context_window(
        self,
        id: str,  # noqa: A002 - public name
        budget: int | None = None,
        *,
        count: Counter | None = None,
    ) -> Window:
        return (await self.load(id)).context_window(budget, count=count)

    async def list(
        self,
        *,
        agent: str | None = None,
        owner: str | None = None,
        archived: bool | None = None,
        tag: str | None = None,
        limit: int | None = 100,
        after: int | None = None,
    ) -> Page[Summary]:
        query = ListQuery(
            agent=agent,
            owner=owner,
            archived=archived,
            tag=tag,
            limit=limit,
            after=after,
        )
        return await self._passage.run(conversations.summaries(self._context, query))

    summaries = list  # noqa: A003 - this one is meant

    async def search(
        self, query: str, *, progress: Progress | None = None, **where: Unpack[Where]
    ) -> Page[Match]:
        wanted = SearchQuery(text=query, **where)
        operation = searching.search(self._context, wanted, progress)
        return await self._passage.run(operation)

    # --- recording --------------------------------------------------------------------

    async def recorder(
        self,
        id: str,  # noqa: A002 - public name
        **options: Unpack[Options],
    ) -> AsyncRecorder:
        return await AsyncRecorder(self._passage, id, **options)

    # --- removing ---------------------------------------------------------------------

    async def delete(self, *ids: str, owner: str | None = None) -> int:
        return await self._passage.run(conversations.delete(self._context, ids, owner))

    async def prune(
        self,
        *,
        idle: timedelta | None = None,
        per_owner: int | None = None,
        at_most: float | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        policy = sessions(idle, per_owner, at_most)
        return await self._passage.run(
            prune_conversations(self._context, policy, dry_run=dry_run)
        )
