"""A store's conversations, for the sync and the async API."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeAlias, TypedDict, Unpack

from holdfast._api import files as files_api
from holdfast._api.keywords import ListOptions, list_query, search_query
from holdfast._api.runner import AsyncRunner, Runner
from holdfast._api.thread import AsyncThread, Thread
from holdfast._engine.context import Context
from holdfast._engine.files import draft as file_draft
from holdfast._engine.files.draft import FilesDraft, FileSource
from holdfast._engine.records import conversation_fields, conversations
from holdfast._engine.search import query as search
from holdfast._engine.search.query import Match, SearchOptions
from holdfast._engine.threads import save
from holdfast._engine.threads.lineage import Reference
from holdfast._engine.upkeep import prune, prune_plans
from holdfast._messages import attachments
from holdfast._messages.attachments import StoredMessages
from holdfast._messages.repair import How
from holdfast._port import Pruned, Start
from holdfast._values.arguments import checked_items, checked_text
from holdfast._values.keywords import refuse_unknown
from holdfast._values.records import UNSET, Checkpoint, Page, Progress, Unset
from holdfast._values.reference import HEAD
from holdfast.conversations import Conversation, Counter, Summary
from holdfast.messages import AnyMessage
from holdfast.recorder import AsyncRecorder, Recorder, RecorderOptions
from holdfast.retention import Retention

# Inside the classes below, `list` is a method.
Window: TypeAlias = "list[AnyMessage]"


class AboutOptions(TypedDict, total=False):
    """The fields of a conversation beside its messages."""

    title: str | None
    summary: str | None
    context: dict[str, Any]
    tags: list[str]
    archived: bool
    budget: int | None
    metadata: dict[str, Any]


def new_conversation(
    id_: str | None,
    owner: str | None,
    agent: str | None,
    messages: Sequence[AnyMessage],
    about: AboutOptions,
) -> Conversation:
    """A conversation that is not in the store yet."""
    others = ("owner", "agent", "messages")
    refuse_unknown("a conversation", about, AboutOptions, *others)
    return Conversation(
        id=checked_text(id_, "id") or "",
        owner=owner,
        agent=agent,
        messages=list(checked_items(messages, "messages")),
        **about,
    )


def sessions(
    idle: timedelta | None,
    per_owner: int | None,
    in_all: int | None,
    at_most: float | None,
) -> Retention:
    """The retention that keeps conversations by these limits."""
    return Retention(
        idle=idle, threads_per_owner=per_owner, threads_in_all=in_all, at_most=at_most
    )


# The runner orders saves by thread; the operations of a conversation take its id.


async def add(
    context: Context,
    thread: str,
    messages: StoredMessages,
    owner: str | None,
    files: FilesDraft | None = None,
) -> Checkpoint:
    """Append messages to the conversation of a thread."""
    id_, how = thread.removeprefix(conversations.PREFIX), save.Options(files=files)
    return await conversations.add(context, id_, messages, owner=owner, how=how)


async def update(
    context: Context, thread: str, values: dict[str, object], agent: str | Unset | None
) -> Checkpoint:
    """Set values of the conversation of a thread, beside its messages."""
    return await conversations.update(
        context, thread.removeprefix(conversations.PREFIX), values, agent
    )


class Conversations:
    """A store's conversations; ``store.conversations``.

    A conversation is the thread ``conversation:<id>``: it has a history and can be
    forked and rewound. A session is a conversation with an owner.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def thread(self, id: str) -> Thread:
        """The thread of a conversation, for its history, forks and rewinds."""
        return Thread(
            self._runner, conversations.thread_of(id), Start(kind=conversations.KIND)
        )

    # --- saving -----------------------------------------------------------------------

    def create(
        self,
        id: str | None = None,
        *,
        owner: str | None = None,
        agent: str | None = None,
        messages: Sequence[AnyMessage] = (),
        **about: Unpack[AboutOptions],
    ) -> Conversation:
        """A new conversation; `Conflict` if the id is in use.

        Without an id, one is made. ``about`` are ``title``, ``summary``, ``context``,
        ``tags``, ``archived``, ``budget`` and ``metadata``.
        """
        new = new_conversation(id, owner, agent, messages, about)
        return self._runner.run(conversations.create, new)

    def get_or_create(
        self,
        user_id: str,
        id: str | None = None,
        *,
        agent: str | None = None,
        **about: Unpack[AboutOptions],
    ) -> Conversation:
        """A user's conversation, made if it is not there; another user's is not found.

        ``about``, the same as for `create`, is used only for a new one.
        """
        wanted = new_conversation(id, user_id, agent, (), about)
        return self._runner.run(conversations.get_or_create, wanted)

    def add(
        self,
        id: str,
        *messages: AnyMessage,
        owner: str | None = None,
        files: FileSource | None = None,
    ) -> Checkpoint:
        """Append messages; the cost does not grow with the conversation.

        ``files`` is a `Workspace`, whose files are saved with them.
        """
        draft = None if files is None else file_draft.FilesDraft.of(files)
        return self._runner.save(
            add,
            conversations.thread_of(id),
            attachments.kept_new(messages),
            owner,
            draft,
        )

    def save(self, conversation: Conversation) -> Conversation:
        """Save a whole conversation and give it back.

        A conversation that was loaded is saved only on top of what it was loaded from:
        if another writer saved since, `Conflict` is raised. With another ``agent`` it
        is given to that agent. A conversation made by hand replaces the stored one.
        """
        return self._runner.run(conversations.save, conversation)

    def update(
        self,
        id: str,
        *,
        merge: bool = False,
        agent: str | Unset | None = UNSET,
        **about: Unpack[AboutOptions],
    ) -> Checkpoint:
        """Set title, summary, context, tags and so on; the messages stay untouched.

        Given values replace the stored ones. With ``merge``, the keys of ``context``
        and ``metadata`` that are not given stay, and ``None`` removes a key. With
        ``agent`` the conversation is that agent's from now on; checkpoints of the agent
        before it still hold it as it was.
        """
        values = conversation_fields.as_values(about, merge=merge)
        return self._runner.save(update, conversations.thread_of(id), values, agent)

    def archive(self, id: str, *, archived: bool = True) -> Checkpoint:
        """Mark a conversation as archived, or with ``archived=False`` as active."""
        return self.update(id, archived=archived)

    def auto_title(self, id: str) -> str | None:
        """Title a conversation by its first user message, unless it has a title."""
        return self._runner.run(conversations.auto_title, id)

    # --- loading ----------------------------------------------------------------------

    def load(
        self,
        id: str,
        ref: Reference = HEAD,
        *,
        owner: str | None = None,
        repair: How | None = None,
    ) -> Conversation:
        """A conversation as it is, or as it was at a checkpoint.

        With ``owner`` another user's conversation is not found. ``repair`` makes a
        transcript valid again that ends within a batch of tool calls:
        ``"interrupted"`` answers an open call with that word, ``"drop"`` removes it,
        ``"propose"`` removes it and returns it. ``repairs`` of the result lists what
        was changed; it is saved only if you save it.
        """
        return self._runner.run(conversations.load, id, ref, owner=owner, repair=repair)

    def find(self, id: str, *, owner: str | None = None) -> Conversation | None:
        """A conversation, ``None`` if there is none."""
        return self._runner.run(conversations.find, id, owner=owner)

    def latest_safe(self, id: str) -> Checkpoint | None:
        """The newest checkpoint at which every tool call was answered."""
        return self._runner.run(conversations.latest_safe, id)

    def context_window(
        self, id: str, budget: int | None = None, *, count: Counter | None = None
    ) -> Window:
        """The system messages and the newest others that fit into so many tokens."""
        return self.load(id).context_window(budget, count=count)

    def list(self, **options: Unpack[ListOptions]) -> Page[Summary]:
        """Conversations without their messages, last used first.

        ``agent``, ``owner``, ``archived`` and ``tag`` select, ``context`` and
        ``metadata`` those that have these items there, or in a list under that name;
        ``limit`` is the size of a page, 100, and ``after`` the cursor of the page
        before.
        """
        return self._runner.run(conversations.summaries, list_query(options))

    summaries = list  # noqa: A003 - this one is meant

    def search(
        self,
        query: str,
        *,
        progress: Progress | None = None,
        **options: Unpack[SearchOptions],
    ) -> Page[Match]:
        """`Store.search` in conversations only, with the same options."""
        wanted = search_query(query, options, kind=conversations.KIND)
        return self._runner.run(search.search, wanted, progress)

    # --- recording --------------------------------------------------------------------

    def recorder(self, id: str, **options: Unpack[RecorderOptions]) -> Recorder:
        """Saves the steps of an agent's loop, and resumes it.

        ``save`` is the strategy that says when to make a checkpoint, ``repair`` what to
        do with a call that was interrupted, ``system`` the text that replaces the
        stored system prompt; ``owner`` and ``agent`` are those of a new conversation.
        ``tools`` are the functions that `Recorder.call` runs, and ``effects`` says what
        happens to a call that means an effect which a rewind has left behind. The files
        of a ``workspace`` are saved with each checkpoint and after each tool.
        """
        return Recorder(self._runner, id, **options)

    # --- removing ---------------------------------------------------------------------

    def delete(self, *ids: str, owner: str | None = None) -> int:
        """Delete conversations, with ``owner`` only that user's; returns how many."""
        return self._runner.run(conversations.delete, ids, owner)

    def prune(
        self,
        *,
        idle: timedelta | None = None,
        per_owner: int | None = None,
        in_all: int | None = None,
        agent: str | None = None,
        owner: str | None = None,
        at_most: float | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        """Drop conversations not used for a time, and all but those used last.

        ``per_owner`` is how many of each owner stay, ``in_all`` how many altogether;
        ``agent`` and ``owner`` limit it to the conversations of one. To prune
        automatically after saves, open the store with
        ``retention=Retention(kinds=("conversation",), ...)``.
        """
        policy = sessions(idle, per_owner, in_all, at_most)
        only = prune_plans.PruneRange(agent=agent, owner=owner)
        return self._runner.run(
            prune.prune_conversations, policy, only, dry_run=dry_run
        )


class AsyncConversations:
    """Like `Conversations`, awaited."""

    def __init__(self, runner: AsyncRunner) -> None:
        self._runner = runner

    def thread(self, id: str) -> AsyncThread:
        return AsyncThread(
            self._runner, conversations.thread_of(id), Start(kind=conversations.KIND)
        )

    # --- saving -----------------------------------------------------------------------

    async def create(
        self,
        id: str | None = None,
        *,
        owner: str | None = None,
        agent: str | None = None,
        messages: Sequence[AnyMessage] = (),
        **about: Unpack[AboutOptions],
    ) -> Conversation:
        new = new_conversation(id, owner, agent, messages, about)
        return await self._runner.run(conversations.create, new)

    async def get_or_create(
        self,
        user_id: str,
        id: str | None = None,
        *,
        agent: str | None = None,
        **about: Unpack[AboutOptions],
    ) -> Conversation:
        wanted = new_conversation(id, user_id, agent, (), about)
        return await self._runner.run(conversations.get_or_create, wanted)

    async def add(
        self,
        id: str,
        *messages: AnyMessage,
        owner: str | None = None,
        files: FileSource | None = None,
    ) -> Checkpoint:
        draft = None if files is None else await files_api.draft_of(self._runner, files)
        new = attachments.kept_new(messages)
        return await self._runner.save(
            add, conversations.thread_of(id), new, owner, draft
        )

    async def save(self, conversation: Conversation) -> Conversation:
        return await self._runner.run(conversations.save, conversation)

    async def update(
        self,
        id: str,
        *,
        merge: bool = False,
        agent: str | Unset | None = UNSET,
        **about: Unpack[AboutOptions],
    ) -> Checkpoint:
        values = conversation_fields.as_values(about, merge=merge)
        name = conversations.thread_of(id)
        return await self._runner.save(update, name, values, agent)

    async def archive(self, id: str, *, archived: bool = True) -> Checkpoint:
        return await self.update(id, archived=archived)

    async def auto_title(self, id: str) -> str | None:
        return await self._runner.run(conversations.auto_title, id)

    # --- loading ----------------------------------------------------------------------

    async def load(
        self,
        id: str,
        ref: Reference = HEAD,
        *,
        owner: str | None = None,
        repair: How | None = None,
    ) -> Conversation:
        return await self._runner.run(
            conversations.load, id, ref, owner=owner, repair=repair
        )

    async def find(self, id: str, *, owner: str | None = None) -> Conversation | None:
        return await self._runner.run(conversations.find, id, owner=owner)

    async def latest_safe(self, id: str) -> Checkpoint | None:
        return await self._runner.run(conversations.latest_safe, id)

    async def context_window(
        self, id: str, budget: int | None = None, *, count: Counter | None = None
    ) -> Window:
        return (await self.load(id)).context_window(budget, count=count)

    async def list(self, **options: Unpack[ListOptions]) -> Page[Summary]:
        return await self._runner.run(conversations.summaries, list_query(options))

    summaries = list  # noqa: A003 - this one is meant

    async def search(
        self,
        query: str,
        *,
        progress: Progress | None = None,
        **options: Unpack[SearchOptions],
    ) -> Page[Match]:
        wanted = search_query(query, options, kind=conversations.KIND)
        return await self._runner.run(search.search, wanted, progress)

    # --- recording --------------------------------------------------------------------

    async def recorder(
        self, id: str, **options: Unpack[RecorderOptions]
    ) -> AsyncRecorder:
        return await AsyncRecorder(self._runner, id, **options)

    # --- removing ---------------------------------------------------------------------

    async def delete(self, *ids: str, owner: str | None = None) -> int:
        return await self._runner.run(conversations.delete, ids, owner)

    async def prune(
        self,
        *,
        idle: timedelta | None = None,
        per_owner: int | None = None,
        in_all: int | None = None,
        agent: str | None = None,
        owner: str | None = None,
        at_most: float | None = None,
        dry_run: bool = False,
    ) -> Pruned:
        policy = sessions(idle, per_owner, in_all, at_most)
        only = prune_plans.PruneRange(agent=agent, owner=owner)
        return await self._runner.run(
            prune.prune_conversations, policy, only, dry_run=dry_run
        )
