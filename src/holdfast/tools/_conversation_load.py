"""The tool that reads a conversation: a page of messages, or one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, cast

from msgspec import Meta

from holdfast._engine.context import Context
from holdfast._engine.records import conversations
from holdfast._engine.threads import listing
from holdfast._engine.threads.listing import ThreadsQuery
from holdfast._values.records import Checkpoint
from holdfast.conversations import Conversation
from holdfast.messages import MARK, stored
from holdfast.tools._bounds import (
    BRIEF,
    LARGEST,
    cut_fields,
    moment,
    note_of_cuts,
    number,
    piece,
    plain,
    shortened,
    shown_fields,
    size,
)
from holdfast.tools._effects import effects_of
from holdfast.tools._errors import Refusal, echo, suggestion
from holdfast.tools._parts import part_of
from holdfast.tools._tool import (
    DEFAULT_LIMIT,
    Arguments,
    ConversationId,
    Limit,
    Result,
    Scope,
    tool,
)

Message = dict[str, Any]

# How many conversations are searched for names similar to an unknown one.
KNOWN = 1000
# Bytes of JSON for each field beside the messages.
ROOMS = {
    "title": 1000,
    "summary": 4000,
    "tags": 1000,
    "context": 2000,
    "metadata": 2000,
}
# A part that is read only if it is asked for.
EFFECTS = "effects"
# A long message with at most this many other bytes is shown as its text alone.
BESIDE_TEXT = 2000


class ConversationLoad(Arguments, frozen=True):
    conversation_id: ConversationId
    part: Annotated[
        str | None,
        Meta(description="Only this: a field or field.key, such as messages.12"),
    ] = None
    limit: Limit = None
    cursor: Annotated[
        str | None, Meta(description="Cursor of the result before, or a position")
    ] = None


@tool(
    "Read one conversation: title, summary, tags, context and so on, and its newest"
    " messages in order, each with its position. Use it to recall what was said."
    " cursor goes on with older messages. Long values are shortened and marked '… [+N"
    " characters]'; with part, such as messages.12, you get one value in full, in"
    " pieces if it is very long: call again with the cursor until that is null. part"
    " effects gives the tool calls it made, and those that happened but are not in it"
    " any more because it was set back (left_behind).",
    read_only=True,
    per_owner=True,
)
async def conversation_load(
    context: Context, scope: Scope, given: ConversationLoad
) -> Result:
    head = await find_head(context, scope, given.conversation_id)
    found = await conversations.load(context, given.conversation_id, head)
    messages = [
        {name: value for name, value in stored(message).items() if name != MARK}
        for message in found.messages
    ]
    fields = {name: getattr(found, name) for name in ROOMS}
    if given.part is None:
        page = _page(messages, given)
        return _shown(found, fields, messages, page)
    about: Result = {"conversation_id": found.id, "part": shortened(given.part, 1000)}
    parts = {"messages": messages, **fields}
    if given.part.partition(".")[0] == EFFECTS:
        thread = conversations.thread_of(found.id)
        parts[EFFECTS] = await effects_of(context, scope, thread)
    value = part_of(parts, given.part)
    if given.part.startswith("messages."):
        value = _readable(cast("Message", value))
    return piece(about, value, given.cursor)


async def find_head(context: Context, scope: Scope, id_: str) -> Checkpoint:
    """The newest state of a conversation within a scope."""
    record = await context.find_thread(conversations.thread_of(id_))
    if record is not None and record.head is not None and scope.holds(record):
        return record.head
    query = ThreadsQuery(
        kind=conversations.KIND, agent=scope.agent, owner=scope.owner, limit=KNOWN
    )
    threads = await listing.threads(context, query)
    known = [thread.id.removeprefix(conversations.PREFIX) for thread in threads]
    none = "There are no conversations yet: conversation_save makes one. "
    raise Refusal(
        "not_found",
        f"there is no conversation {echo(id_)}",
        f"{suggestion(id_, known) or none}conversation_list gives all ids.",
    )


def _readable(message: Message) -> object:
    """The text of a message that takes several pieces, if the rest of it is small."""
    content = message.get("content")
    beside = {name: value for name, value in message.items() if name != "content"}
    is_short = size(plain(message)) <= LARGEST - 2 * BRIEF
    if is_short or not isinstance(content, str) or size(plain(beside)) > BESIDE_TEXT:
        return message
    return content


def _page(messages: Sequence[Message], given: ConversationLoad) -> range:
    """The positions of the messages of a page."""
    end = len(messages) if given.cursor is None else number(given.cursor)
    end = min(end, len(messages))
    return range(max(0, end - (given.limit or DEFAULT_LIMIT)), end)


def _shown(
    found: Conversation, fields: Result, messages: Sequence[Message], page: range
) -> Result:
    about: Result = {
        "conversation_id": found.id,
        "agent_id": found.agent,
        "owner": found.owner,
        "archived": bool(found.archived),
        **shown_fields(fields, ROOMS),
        "message_count": len(messages),
        "created_at": moment(found.created_at),
        "updated_at": moment(found.updated_at),
    }
    shown, cut = _newest(messages, page, LARGEST - BRIEF - size(about))
    cut = [*cut_fields({name: about[name] for name in ROOMS}, fields), *cut]
    first = page.stop - len(shown)
    return {
        **about,
        "messages": shown,
        "cursor": str(first) if first else None,
        **note_of_cuts("conversation_load", cut),
    }


def _newest(
    messages: Sequence[Message], page: range, room: int
) -> tuple[list[Message], list[str]]:
    """The last messages of a page that fit, and the names of the shortened ones."""
    shown: list[Message] = []
    cut: list[str] = []
    for position in reversed(page):
        brief = shortened(messages[position])
        place: Message = {"position": position}
        # A message with too many fields was shortened to a text.
        fields: Message = {"shortened": brief} if isinstance(brief, str) else brief
        placed = place | fields | place
        room -= size(placed) + 1
        if room < 0 and shown:
            break
        shown.insert(0, placed)
        if brief != plain(messages[position]):
            cut.insert(0, f"messages.{position}")
    return shown, cut
