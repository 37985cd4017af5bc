"""The tools that list, read and search threads of every kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

from msgspec import Meta
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.search import query as searching
from holdfast._engine.search.query import Match, SearchQuery
from holdfast._engine.threads import listing
from holdfast._engine.threads.listing import ThreadsQuery
from holdfast._engine.threads.load import loaded
from holdfast._values.records import Page, ThreadRecord
from holdfast.tools._bounds import (
    LARGEST,
    fitting_page,
    moment,
    note_of_cuts,
    number,
    piece,
    plain,
    shortened,
)
from holdfast.tools._conversations import SEARCH_BITS, what_to_try
from holdfast.tools._errors import Refusal, echo, suggestion
from holdfast.tools._parts import part_of
from holdfast.tools._tool import (
    DEFAULT_LIMIT,
    Arguments,
    Cursor,
    Id,
    Limit,
    Part,
    Result,
    Scope,
    tool,
)

# How many threads are looked at for a name that is similar.
KNOWN = 1000
# Bytes of JSON that the state of a thread takes at most, unless a part is asked for.
ROOM = LARGEST - 4_000

OfKind = Annotated[Id | None, Meta(description="Only of this kind")]


class ThreadList(Arguments, frozen=True):
    kind: OfKind = None
    prefix: Annotated[
        str | None, Meta(description="Only names that begin with this")
    ] = None
    limit: Limit = None
    cursor: Cursor = None


@tool(
    "List threads of every kind, last used first: name, kind, owner, agent_id, how many"
    " steps, and when it was used, without the states (thread_load gives those)."
    " Agents, conversations, documents and the sessions of frameworks are threads."
    " Where cursor is not null there are more: call again with it.",
    read_only=True,
)
async def thread_list(context: Context, scope: Scope, given: ThreadList) -> Result:
    del scope  # it is not offered within one
    after = None if given.cursor is None else number(given.cursor)

    async def fetch(limit: int) -> Page[ThreadRecord]:
        query = ThreadsQuery(
            kind=given.kind, prefix=given.prefix, limit=limit, after=after
        )
        return await listing.threads(context, query)

    shown, cursor = await fitting_page(fetch, _listed, given.limit or DEFAULT_LIMIT)
    return {"threads": shown, "cursor": cursor}


def _listed(thread: ThreadRecord) -> Result:
    head = thread.head
    return {
        "thread": thread.id,
        "kind": thread.kind,
        "owner": thread.owner,
        "agent_id": thread.agent,
        "steps": head.step if head else 0,
        "updated_at": moment(thread.updated_at),
    }


class ThreadLoad(Arguments, frozen=True):
    thread: Annotated[Id, Meta(description="Its whole name")]
    at: Annotated[
        Id | None, Meta(description="A checkpoint, such as @3 for step 3, @~1, an id")
    ] = None
    part: Part = None
    cursor: Cursor = None


@tool(
    "Read the state of a thread, by default the newest one. Use it for what no other"
    " tool reads, and to see what was known at an earlier step. Long values are"
    " shortened and marked '… [+N characters]'; with part, such as messages.12, you get"
    " one value in full, in pieces if it is very long: call again with the cursor until"
    " that is null.",
    read_only=True,
)
async def thread_load(context: Context, scope: Scope, given: ThreadLoad) -> Result:
    del scope
    if await context.find_thread(given.thread) is None:
        raise await _missing(context, given.thread)
    found = await loaded(context, given.thread, given.at or "@")
    checkpoint, state = found.checkpoint, found.state
    about: Result = {
        "thread": given.thread,
        "checkpoint": checkpoint.id,
        "step": checkpoint.step,
        "saved_at": moment(checkpoint.saved_at),
    }
    if given.part is not None:
        about["part"] = given.part
        return piece(about, part_of(_fields(state), given.part), given.cursor)
    shown = shortened(state, ROOM)
    cut = [] if shown == plain(state) else list(_fields(state))
    return {**about, "state": shown, **note_of_cuts("thread_load", cut)}


def _fields(state: object) -> Mapping[str, object]:
    if isinstance(state, Mapping):
        values = cast("Mapping[Any, object]", state)
        return {str(name): value for name, value in values.items()}
    return {"state": state}


async def _missing(context: Context, name: str) -> Refusal:
    page = await listing.threads(context, ThreadsQuery(limit=KNOWN))
    near = suggestion(name, [thread.id for thread in page])
    return Refusal(
        "not_found",
        f"there is no thread {echo(name)}",
        f"{near}thread_list gives all names.",
    )


class ThreadSearch(Arguments, frozen=True):
    query: Annotated[str, Meta(description='Words, or a "quoted phrase"')]
    kind: OfKind = None
    limit: Limit = None
    cursor: Cursor = None


@tool(
    "Find the messages that contain all words of the query, whatever their case, in"
    " threads of every kind. Use a few distinctive words, not a question. Gives a"
    " snippet, thread and position of each; thread_load with part messages.<position>"
    " gives the whole message. Where cursor is not null there are more: call again"
    " with it.",
    read_only=True,
)
async def thread_search(context: Context, scope: Scope, given: ThreadSearch) -> Result:
    del scope
    after = None if given.cursor is None else number(given.cursor, SEARCH_BITS)
    query = SearchQuery(text=given.query, kind=given.kind, after=after)

    async def fetch(limit: int) -> Page[Match]:
        return await searching.search(context, replace(query, limit=limit))

    shown, cursor = await fitting_page(fetch, _found, given.limit or DEFAULT_LIMIT)
    hint = {} if shown or after is not None else await what_to_try(context, query)
    return {"matches": shown, "cursor": cursor, **hint}


def _found(match: Match) -> Result:
    return {
        "thread": match.thread,
        "position": match.position,
        "role": shortened(match.role, 100),
        "snippet": shortened(match.snippet, 2000),
        "updated_at": moment(match.updated_at),
    }


THREAD_TOOLS = (thread_list, thread_load, thread_search)
