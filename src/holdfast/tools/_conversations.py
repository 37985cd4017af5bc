"""The tools that list, search and delete conversations."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.records import conversations
from holdfast._engine.records.conversations import ListQuery
from holdfast._engine.search import query as searching
from holdfast._engine.search.query import Match, SearchQuery
from holdfast._engine.search.text import words_of
from holdfast._engine.threads import removal
from holdfast._values.records import Page
from holdfast.conversations import Summary
from holdfast.tools._bounds import fitting_page, moment, number, shortened
from holdfast.tools._conversation_load import conversation_load, find_head
from holdfast.tools._conversation_save import conversation_save
from holdfast.tools._errors import echo, listed
from holdfast.tools._tool import (
    DEFAULT_LIMIT,
    Arguments,
    ConversationId,
    Cursor,
    Id,
    Limit,
    Result,
    Scope,
    tool,
)

# The cursor of a search is a larger number than the cursor of a list.
SEARCH_BITS = 94
# The words that are tried alone if no message has all of them.
MOST_TRIED = 8

OnlyAgent = Annotated[Id | None, Meta(description="Only with this agent")]
OnlyOwner = Annotated[Id | None, Meta(description="Only of this user")]


class ConversationDelete(Arguments, frozen=True):
    conversation_id: ConversationId


@tool(
    "Delete a conversation with its history. It can be brought back only if a"
    " checkpoint of its agent was made while it existed: checkpoint_restore then puts"
    " the whole agent back to that time. Use it only when the user asked for it; to"
    " put a conversation away use conversation_save with archived true. Gives how many"
    " were deleted, 0 if there was none with this id.",
    destructive=True,
    per_owner=True,
)
async def conversation_delete(
    context: Context, scope: Scope, given: ConversationDelete
) -> Result:
    thread = conversations.thread_of(given.conversation_id)
    record = await context.find_thread(thread)
    if record is None or not scope.holds(record):
        note = f"There was no conversation {echo(given.conversation_id)}."
        return {"deleted": 0, "note": note}
    return {"deleted": await removal.delete_threads(context, [thread])}


class ConversationList(Arguments, frozen=True):
    agent_id: OnlyAgent = None
    owner: OnlyOwner = None
    archived: Annotated[
        bool | None, Meta(description="Only archived ones, or only others")
    ] = None
    tag: Annotated[str | None, Meta(description="Only with this tag")] = None
    limit: Limit = None
    cursor: Cursor = None


@tool(
    "List conversations, last used first: conversation_id, title, tags, whether"
    " archived, how many messages, and times, without the messages (conversation_load"
    " gives those). Use it to find a valid conversation_id. Where cursor is not null"
    " there are more: call again with it.",
    read_only=True,
    per_owner=True,
)
async def conversation_list(
    context: Context, scope: Scope, given: ConversationList
) -> Result:
    del scope  # already in the arguments
    after = None if given.cursor is None else number(given.cursor)

    async def fetch(limit: int) -> Page[Summary]:
        query = ListQuery(
            agent=given.agent_id,
            owner=given.owner,
            archived=given.archived,
            tag=given.tag,
            limit=limit,
            after=after,
        )
        return await conversations.summaries(context, query)

    shown, cursor = await fitting_page(fetch, _listed, given.limit or DEFAULT_LIMIT)
    return {"conversations": shown, "cursor": cursor}


def _listed(summary: Summary) -> Result:
    return {
        "conversation_id": summary.id,
        "agent_id": summary.agent,
        "owner": summary.owner,
        "title": shortened(summary.title, 500),
        "tags": shortened(summary.tags, 500),
        "archived": bool(summary.archived),
        "context": shortened(summary.context, 500),
        "message_count": summary.messages,
        "user_message_count": summary.user_messages,
        "exchange_count": summary.exchanges,
        "created_at": moment(summary.created_at),
        "updated_at": moment(summary.updated_at),
    }


class ConversationSearch(Arguments, frozen=True):
    query: Annotated[str, Meta(description='Words, or a "quoted phrase"')]
    agent_id: OnlyAgent = None
    owner: OnlyOwner = None
    conversation_id: Annotated[Id | None, Meta(description="Only in this one")] = None
    limit: Limit = None
    cursor: Cursor = None


@tool(
    "Find the messages that contain all words of the query, whatever their case, in the"
    " conversations used last first. Use a few distinctive words, not a question; quote"
    " words that stand together. If no message has all of them, the note says which are"
    " found alone. Gives a snippet, conversation_id and"
    " position of each; conversation_load with part messages.<position> gives the"
    " whole message, with cursor <position> those before it. Where cursor is not null"
    " there are more: call again with it.",
    read_only=True,
    per_owner=True,
)
async def conversation_search(
    context: Context, scope: Scope, given: ConversationSearch
) -> Result:
    after = None if given.cursor is None else number(given.cursor, SEARCH_BITS)
    if given.conversation_id is not None:
        await find_head(context, scope, given.conversation_id)

    query = SearchQuery(
        text=given.query,
        agent=given.agent_id,
        owner=given.owner,
        conversation=given.conversation_id,
        after=after,
    )

    async def fetch(limit: int) -> Page[Match]:
        return await searching.search(context, replace(query, limit=limit))

    shown, cursor = await fitting_page(fetch, _found, given.limit or DEFAULT_LIMIT)
    hint = {} if shown or after is not None else await what_to_try(context, query)
    return {"matches": shown, "cursor": cursor, **hint}


async def what_to_try(context: Context, query: SearchQuery) -> Result:
    """A note for a search without matches: which of its words are found alone."""
    words = words_of(query.text)[:MOST_TRIED]
    if len(words) == 1:
        text = f"No message has {echo(words[0])}. Search for a part of it, or for"
        return {"note": f"{text} another word that was used."}
    found = await searching.words_found(context, query, words)
    alone = listed(word for word in words if word in found) or "none"
    missing = listed(word for word in words if word not in found) or "none"
    text = f"No message has all of these words. Found alone: {alone}; not found:"
    return {"note": f"{text} {missing}. Search for fewer words or other ones."}


def _found(match: Match) -> Result:
    return {
        "conversation_id": match.conversation,
        "position": match.position,
        "role": shortened(match.role, 100),
        "snippet": shortened(match.snippet, 2000),
        "title": shortened(match.title, 500),
        "agent_id": match.agent,
        "owner": match.owner,
        "updated_at": moment(match.updated_at),
    }


CONVERSATION_TOOLS = (
    conversation_save,
    conversation_load,
    conversation_delete,
    conversation_list,
    conversation_search,
)
