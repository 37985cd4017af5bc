"""Conversations over threads: creating, adding, loading, listing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.records.conversation_fields import applied, merged_names
from holdfast._engine.threads import removal
from holdfast._engine.threads.drafts import (
    AmendDraft,
    Amendment,
    ListsDraft,
    read_values,
    read_values_of,
)
from holdfast._engine.threads.lineage import HistoryQuery, Reference, history
from holdfast._engine.threads.listing import read_threads
from holdfast._engine.threads.load import LoadedState, loaded, read_listed
from holdfast._engine.threads.save import Options, seen
from holdfast._engine.threads.save import save as save_thread
from holdfast._messages.attachments import StoredMessages, kept, kept_new, whole
from holdfast._messages.fields import checked, fitting
from holdfast._messages.repair import How, repaired
from holdfast._messages.tally import Tally
from holdfast._port import Details, Receipt, Start, Threads, Write
from holdfast._values.arguments import checked_flag, checked_instance
from holdfast._values.records import (
    LONGEST_NAME,
    SEPARATOR,
    UNSET,
    Checkpoint,
    Page,
    ThreadRecord,
    Unset,
    check_filter,
    checked_limit,
    checked_name,
)
from holdfast._values.reference import HEAD
from holdfast.conversations import (
    SUMMARIZED,
    Conversation,
    Summary,
    counts_of,
    from_state,
    tally,
    tally_of,
    title_of,
    to_state,
)
from holdfast.errors import Conflict, NotFound

KIND = "conversation"
PREFIX = "conversation:"
CHUNK = 200
NOTHING: Mapping[str, object] = {}


def thread_of(id_: object) -> str:
    """The name of the thread that keeps a conversation."""
    longest = LONGEST_NAME - len(PREFIX)
    return PREFIX + checked_name(id_, "conversation id", longest)


def missing(id_: str) -> NotFound:
    """The error for a conversation that does not exist, or has another owner."""
    return NotFound(
        f"conversation {id_!r} does not exist; see conversations.list()",
        thread=PREFIX + id_,
    )


# --- saving ---------------------------------------------------------------------------


async def create(context: Context, conversation: Conversation) -> Conversation:
    """A new conversation; `Conflict` if its id is in use."""
    conversation.id = conversation.id or context.new_id()
    try:
        return await _save(context, conversation, expect=None)
    except Conflict as conflict:
        if conflict.code != "head_moved":
            raise
        raise Conflict(
            f"conversation {conversation.id!r} exists already; load it, or choose"
            " another id",
            code="conversation_exists",
            thread=conflict.thread,
            found=conflict.found,
        ) from None


async def get_or_create(context: Context, wanted: Conversation) -> Conversation:
    """A user's conversation, new if there is none with its id."""
    # A conversation without an owner would be visible to every owner.
    owner = checked_name(wanted.owner, "user id")
    if not wanted.id:
        return await create(context, wanted)
    while True:
        try:
            return await load(context, wanted.id, owner=owner)
        except NotFound:
            record = await context.find_thread(thread_of(wanted.id))
            if record is not None and record.head is not None:
                if record.owner != owner:
                    raise
                continue  # another writer has just created it
        try:
            return await create(context, wanted)
        except Conflict as conflict:
            if conflict.code != "conversation_exists":
                raise


async def save(context: Context, conversation: Conversation) -> Conversation:
    """Save a whole conversation on the checkpoint it was loaded from."""
    checked_instance(conversation, Conversation, "conversation")
    conversation.id = conversation.id or context.new_id()
    thread = thread_of(conversation.id)
    while True:
        expect = await seen(context, thread, conversation.checkpoint)
        record = await context.find_thread(thread)
        _refuse_foreign(conversation, record)
        is_given = record is not None and record.agent != conversation.agent
        # Expect the head that was checked, also where any head is accepted: another
        # owner may create the thread in between.
        any_head = isinstance(expect, Unset)
        head = (record.head if record else None) if any_head else expect
        try:
            return await _save(context, conversation, expect=head, give=is_given)
        except Conflict as conflict:
            if not any_head or conflict.code not in {"head_moved", "thread_deleted"}:
                raise
        except NotFound as missed:
            # The checkpoint was removed after it was read: read again.
            if missed.code != NotFound.default_code:
                raise


def _refuse_foreign(conversation: Conversation, record: ThreadRecord | None) -> None:
    if record is None:
        return
    # A loaded conversation may be given to another agent; that moves the head, so only
    # one of two programs succeeds. One that a program made itself takes nothing from
    # others.
    is_mine = conversation.checkpoint is not None or record.agent == conversation.agent
    if record.owner != conversation.owner or not is_mine:
        raise Conflict(
            f"conversation {conversation.id!r} belongs to another owner or agent;"
            " load it, or choose another id",
            code="foreign",
            thread=record.id,
        )


async def _save(
    context: Context,
    conversation: Conversation,
    *,
    expect: Reference | Unset | None,
    give: bool = False,
) -> Conversation:
    thread = thread_of(conversation.id)
    # The messages of a loaded conversation may have any role.
    keep = kept if conversation.checkpoint else kept_new
    messages = keep(checked(Conversation, "messages", conversation.messages) or ())
    plain = to_state(conversation)
    now = context.clock()

    def everything(before: dict[str, Any] | None) -> Amendment:
        old = before or {}
        values: dict[str, object] = {
            "created_at": conversation.created_at or old.get("created_at", now),
            "messages": messages.messages,
            "counts": counts_of(tally(messages.messages)),
        }
        apart = messages.all_apart(old.get("content_ids", ()))
        return Amendment(plain | values | apart, whole=True)

    start = _start(conversation)
    commit = _giving(context, start.agent) if give else None
    how = Options(expect=expect, start=start, commit=commit)
    draft = AmendDraft(("content_ids", "created_at"), everything)
    saved = await save_thread(context, thread, draft, how)
    if not conversation.created_at:
        values = await read_values_of(context, saved, "created_at")
        conversation.created_at = values["created_at"]
    conversation.checkpoint, conversation.updated_at = saved.id, saved.saved_at
    return conversation


def _start(conversation: Conversation) -> Start:
    owner, agent = conversation.owner, conversation.agent
    return Start(
        kind=KIND,
        owner=None if owner is None else checked_name(owner, "owner"),
        agent=None if agent is None else checked_name(agent, "agent"),
        # A loaded conversation expects its checkpoint, which a deletion removes.
        anew=True,
    )


def _giving(
    context: Context, agent: str | None
) -> Callable[[Write], Awaitable[Receipt]]:
    """A commit that also gives the conversation to another agent."""

    async def commit(write: Write) -> Receipt:
        about = Details(agent=agent)
        given = Write(thread=write.thread, at=write.at, expect=UNSET, details=about)
        return (await context.backend.commit([write, given]))[0]

    return commit


async def add(
    context: Context,
    id_: str,
    messages: StoredMessages,
    *,
    owner: str | None = None,
    how: Options | None = None,
    values: Mapping[str, object] = NOTHING,
) -> Checkpoint:
    """Append messages, and set other values in the same save."""
    if owner is not None:
        await _find(context, id_, owner)
    draft = ListsDraft({"messages": messages.messages})

    def longer(before: dict[str, Any] | None) -> Amendment:
        if before is None:
            raise missing(id_)
        counted = tally_of(before.get("counts")).after(messages.messages)
        apart = messages.apart(before.get("content_ids", ()))
        lists = ListsDraft({"messages": messages.messages, **apart}) if apart else draft
        return Amendment(
            {"counts": counts_of(counted), **applied(values, before)}, lists
        )

    reads = ("counts", "content_ids", *merged_names(values))
    amend = AmendDraft(reads, longer)
    try:
        return await save_thread(context, thread_of(id_), amend, how or Options())
    except Conflict as conflict:
        if conflict.code != "thread_deleted":
            raise
        raise missing(id_) from None


async def update(
    context: Context,
    id_: str,
    values: Mapping[str, object],
    agent: str | Unset | None = UNSET,
) -> Checkpoint:
    """Set values beside the messages; `UNSET` removes one, `Items` merge.

    With ``agent`` the conversation is given to that agent.
    """

    def changed(before: dict[str, Any] | None) -> Amendment:
        if before is None:
            raise missing(id_)
        return Amendment(applied(values, before))

    thread, draft = thread_of(id_), AmendDraft(merged_names(values), changed)
    if isinstance(agent, Unset) or (await _find(context, id_)).agent == agent:
        return await save_thread(context, thread, draft, Options(), if_changed=True)
    # Make a checkpoint in any case: a program that loaded the conversation before
    # cannot take it back then.
    name = None if agent is None else checked_name(agent, "agent")
    how = Options(commit=_giving(context, name))
    return await save_thread(context, thread, draft, how)


async def auto_title(context: Context, id_: str) -> str | None:
    """Set the title from the first user message, unless there is one."""
    found = await read_listed(context, await _find(context, id_), _titled)
    if found is None:
        raise missing(id_)
    has_one, title = found
    if title is not None and not has_one:
        await update(context, id_, {"title": title})
    return title


async def _titled(context: Context, record: ThreadRecord) -> tuple[bool, str | None]:
    """True and the title of a conversation; false and a proposal if it has none."""
    assert record.head is not None
    known = OpenedCheckpoint.of(record.head)
    found = await read_values(context, known, ("title",))
    if found.get("title"):
        return True, cast("str", found["title"])
    values = await read_values(context, known, ("messages",))
    return False, title_of(cast("list[object]", values.get("messages", [])))


# --- loading --------------------------------------------------------------------------


async def find(
    context: Context, id_: str, *, owner: str | None = None
) -> Conversation | None:
    """A conversation at its head, ``None`` if it does not exist."""
    try:
        return await load(context, id_, owner=owner)
    except NotFound:
        return None


async def load(
    context: Context,
    id_: str,
    reference: Reference = HEAD,
    *,
    owner: str | None = None,
    repair: How | None = None,
) -> Conversation:
    """A conversation as it was at a checkpoint."""
    check_filter(owner, "owner")
    try:
        found = await loaded(context, thread_of(id_), reference)
    except NotFound:
        await _find(context, id_, owner)
        raise
    if owner is not None and found.thread.owner != owner:
        raise missing(id_)
    return as_conversation(found, id_, repair)


def as_conversation(found: LoadedState, id_: str, repair: How | None) -> Conversation:
    """The conversation that a state holds."""
    record, checkpoint, values = found.thread, found.checkpoint, found.values
    messages = whole(values)
    mended = repaired(messages, repair) if repair is not None else None
    return from_state(
        values,
        messages if mended is None else cast("list[dict[str, Any]]", mended.messages),
        id=id_,
        agent=record.agent,
        owner=record.owner,
        updated_at=checkpoint.saved_at,
        checkpoint=checkpoint.id,
        repairs=() if mended is None else mended.repairs,
    )


async def latest_safe(context: Context, id_: str) -> Checkpoint | None:
    """The newest checkpoint at which no tool call was left unanswered."""
    record = await _find(context, id_)
    before: int | None = None
    while True:
        query = HistoryQuery(limit=CHUNK, before=before)
        page = await history(context, record.id, query)
        for checkpoint in page:
            if not (await tally_at(context, checkpoint)).open:
                return checkpoint
        before = page.cursor
        if before is None:
            return None


async def tally_at(context: Context, checkpoint: Checkpoint) -> Tally:
    """The counts of a conversation at a checkpoint."""
    values = await read_values_of(context, checkpoint, "counts")
    return tally_of(values.get("counts"))


async def _find(context: Context, id_: str, owner: str | None = None) -> ThreadRecord:
    record = await context.find_thread(thread_of(id_))
    if record is None or record.head is None:
        raise missing(id_)
    if owner is not None and record.owner != owner:
        raise missing(id_)
    return record


# --- listing --------------------------------------------------------------------------


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of conversations.

    ``context`` and ``metadata`` are items that a conversation must have there.
    """

    agent: str | None = None
    owner: str | None = None
    archived: bool | None = None
    tag: str | None = None
    context: Mapping[str, object] | None = None
    metadata: Mapping[str, object] | None = None
    limit: int | None = 100
    after: int | None = None

    def matches(self, summary: Summary, metadata: Mapping[str, object]) -> bool:
        """True if the conversation belongs into the listing."""
        if self.archived is not None and summary.archived != self.archived:
            return False
        if self.tag is not None and self.tag not in summary.tags:
            return False
        return _has(summary.context, self.context) and _has(metadata, self.metadata)


def _has(found: Mapping[str, object], wanted: Mapping[str, object] | None) -> bool:
    """True if the mapping has the items; a list also has each of its elements."""
    for name, value in (wanted or {}).items():
        there = found.get(name, UNSET)
        elements = cast("list[object]", there) if isinstance(there, list) else []
        if there != value and value not in elements:
            return False
    return True


async def summaries(context: Context, query: ListQuery) -> Page[Summary]:
    """Conversations without their messages, last used first."""
    checked_limit(query.limit)
    check_filter(query.tag, "tag")
    if query.archived is not None:
        checked_flag(query.archived, "archived")
    for name in ("context", "metadata"):
        checked(Conversation, name, getattr(query, name))
    names = (*SUMMARIZED, "metadata") if query.metadata else SUMMARIZED
    scan = Threads(
        kind=KIND,
        agent=query.agent,
        owner=query.owner,
        after=query.after,
        limit=min(query.limit or CHUNK, CHUNK),
    )

    async def matching(context: Context, record: ThreadRecord) -> Summary | None:
        if SEPARATOR in record.id:
            return None  # it is known by its id in its scope only
        assert record.head is not None
        values = await read_values_of(context, record.head, *names)
        summary = _summary(record, values)
        metadata = fitting(Conversation, "metadata", values.get("metadata"), NOTHING)
        return summary if query.matches(summary, metadata) else None

    return await read_threads(context, scan, query.limit, matching, names)


async def summarized(context: Context, record: ThreadRecord) -> Summary:
    """A conversation as listings show it; its messages are not read."""
    assert record.head is not None
    return _summary(record, await read_values_of(context, record.head, *SUMMARIZED))


def _summary(record: ThreadRecord, values: Mapping[str, Any]) -> Summary:
    assert record.head is not None
    counted = tally_of(values.get("counts"))

    def field(name: str, default: Any) -> Any:
        # Earlier versions stored whatever they were given.
        return fitting(Conversation, name, values.get(name), default)

    return Summary(
        id=record.id.removeprefix(PREFIX),
        agent=record.agent,
        owner=record.owner,
        title=field("title", None),
        tags=tuple(field("tags", ())),
        archived=field("archived", default=False),
        context=field("context", {}),
        messages=counted.messages,
        user_messages=counted.user_messages,
        exchanges=counted.exchanges,
        open_calls=counted.open,
        created_at=field("created_at", record.created_at),
        updated_at=record.head.saved_at,
    )


async def delete(context: Context, ids: Sequence[str], owner: str | None) -> int:
    """Delete conversations; checkpoints of agents can still restore them."""
    check_filter(owner, "owner")
    if owner is not None:
        found = [await context.find_thread(thread_of(id_)) for id_ in ids]
        names = [r.id for r in found if r is not None and r.owner == owner]
    else:
        names = [thread_of(id_) for id_ in ids]
    return await removal.delete_threads(context, names)
