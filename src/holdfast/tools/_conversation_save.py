"""The tool that creates, changes and extends conversations."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.records import conversations
from holdfast._engine.records.conversation_fields import MAPPINGS, as_values
from holdfast._engine.threads import save
from holdfast._engine.threads.removal import MOST_REPEATS
from holdfast._messages.attachments import kept
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.conversations import Conversation
from holdfast.errors import Busy, Conflict
from holdfast.messages import stored
from holdfast.tools._bounds import moment
from holdfast.tools._errors import Refusal, echo
from holdfast.tools._tool import Arguments, ConversationId, Result, Scope, tool

Message = dict[str, Any]
ABOUT = ("title", "summary", "tags", "context", "metadata", "archived")


class NewMessage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    role: Literal["assistant", "system", "user"]
    content: str


class ConversationSave(Arguments, frozen=True):
    conversation_id: Annotated[ConversationId, Meta(description="Id, new or known")]
    agent_id: Annotated[str | None, Meta(description="Agent of a new conversation")] = (
        None
    )
    owner: Annotated[str | None, Meta(description="User of a new conversation")] = None
    messages: Annotated[
        list[NewMessage] | None, Meta(description="Messages to append")
    ] = None
    start: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="Their position, else the end"),
    ] = None
    title: Annotated[str | None, Meta(description="Title to show")] = None
    summary: Annotated[str | None, Meta(description="What it is about")] = None
    tags: Annotated[list[str] | None, Meta(description="All its tags")] = None
    context: Annotated[
        dict[str, Any] | None, Meta(description="What is active, such as a task")
    ] = None
    metadata: Annotated[
        dict[str, Any] | None, Meta(description="Anything else about it")
    ] = None
    merge: Annotated[
        bool | None, Meta(description="Keep other keys of context, metadata")
    ] = None
    archived: Annotated[bool | None, Meta(description="Put away")] = None


@tool(
    "Create a conversation, or change the one with this id, and append messages to it."
    " Use it to keep a dialogue, or to title, tag, summarize or archive one. Only what"
    " is given changes: what is null or left out stays as it is, an empty text, list"
    " or object clears it; context and metadata are replaced as a whole, unless merge"
    " is true: then null removes a key. Messages that already are the last ones are not"
    " added again, so that a call can be repeated safely. Gives conversation_id,"
    " whether it was created, how many messages were added and how many there are.",
    per_owner=True,
)
async def conversation_save(
    context: Context, scope: Scope, given: ConversationSave
) -> Result:
    thread = conversations.thread_of(given.conversation_id)
    for _ in range(MOST_REPEATS):
        record = await context.find_thread(thread)
        try:
            if record is None or record.head is None:
                return await _create(context, given)
            _check_belongs(record, scope, given)
            return await _change(context, record, record.head, given)
        except Conflict as conflict:
            if conflict.code not in {"conversation_exists", "head_moved"}:
                raise
    raise Busy(f"conversation {given.conversation_id!r} is being changed by others")


def _messages(given: ConversationSave) -> list[Message]:
    return [{"role": m.role, "content": m.content} for m in given.messages or ()]


def _about(given: ConversationSave) -> dict[str, Any]:
    fields = {name: getattr(given, name) for name in ABOUT}
    return {name: value for name, value in fields.items() if value is not None}


def _first(given: ConversationSave) -> dict[str, Any]:
    """The values for a new conversation; a null to be merged is no item."""
    about = _about(given)
    for name in MAPPINGS if given.merge else ():
        items = about.get(name, {}).items()
        about[name] = {key: value for key, value in items if value is not None}
    return about


async def _create(context: Context, given: ConversationSave) -> Result:
    if given.start:
        raise _misplaced(given.start, 0)
    new = Conversation(
        id=given.conversation_id,
        agent=given.agent_id,
        owner=given.owner,
        messages=[*_messages(given)],
        **_first(given),
    )
    made = await conversations.create(context, new)
    return {
        "conversation_id": made.id,
        "created": True,
        "added": made.message_count,
        "message_count": made.message_count,
        "updated_at": moment(made.updated_at),
    }


def _check_belongs(record: ThreadRecord, scope: Scope, given: ConversationSave) -> None:
    shown = echo(given.conversation_id)
    if not scope.holds(record):
        raise Refusal(
            "conflict",
            f"the id {shown} is in use, and not yours",
            "Choose another conversation_id.",
        )
    found = {"agent_id": record.agent, "owner": record.owner}
    for name, value in found.items():
        if getattr(given, name) not in (None, value):
            raise Refusal(
                "conflict",
                f"conversation {shown} exists, and its {name} is {echo(value)}",
                f"Leave {name} out to change it, or choose another conversation_id.",
            )


async def _change(
    context: Context, record: ThreadRecord, head: Checkpoint, given: ConversationSave
) -> Result:
    id_, wanted = given.conversation_id, _messages(given)
    values = as_values(_about(given), merge=bool(given.merge))
    new = await _missing(context, head, given, wanted) if wanted else []
    if new:
        how = save.Options(expect=head)
        saved = await conversations.add(context, id_, kept(new), how=how, values=values)
    else:
        saved = await conversations.update(context, id_, values)
    summary = await conversations.summarized(context, replace(record, head=saved))
    result: Result = {
        "conversation_id": id_,
        "created": False,
        "added": len(new),
        "message_count": summary.messages,
        "updated_at": moment(summary.updated_at),
    }
    if len(new) < len(wanted):
        result["note"] = (
            "Messages that are there already were not added again. To add them a"
            f" second time, call again with start={summary.messages}."
        )
    return result


async def _missing(
    context: Context, head: Checkpoint, given: ConversationSave, wanted: list[Message]
) -> list[Message]:
    """The messages that the conversation does not have yet."""
    loaded = await conversations.load(context, given.conversation_id, head)
    every = map(stored, loaded.messages)
    found = [{name: m.get(name) for name in ("role", "content")} for m in every]
    if given.start is None:
        # A client that repeats a call after a timeout must not add them twice.
        return [] if found[-len(wanted) :] == wanted else wanted
    there = found[given.start : given.start + len(wanted)]
    if given.start > len(found) or there != wanted[: len(there)]:
        raise _misplaced(given.start, len(found))
    return wanted[len(there) :]


def _misplaced(start: int, count: int) -> Refusal:
    if start > count:
        message = f"start: {start} is after the end, there are {count} messages"
    else:
        message = f"start: there are other messages at {start}, {count} in all"
    hint = f"Pass start={count}, or null, to append. conversation_load shows them."
    return Refusal("conflict", message, hint)
