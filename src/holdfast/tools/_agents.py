"""The tools for agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

from msgspec import Meta

from holdfast._engine.context import Context
from holdfast._engine.records import agents
from holdfast._engine.threads import listing, save
from holdfast._engine.threads.drafts import AmendDraft, Amendment
from holdfast._engine.threads.listing import ThreadsQuery
from holdfast._port import Start
from holdfast._values.records import UNSET, Page
from holdfast.agents import Agent
from holdfast.errors import NotFound
from holdfast.tools._bounds import (
    BRIEF,
    LARGEST,
    cut_fields,
    fitting_page,
    moment,
    note_of_cuts,
    number,
    piece,
    shortened,
    shown_fields,
    size,
)
from holdfast.tools._errors import Refusal, echo, suggestion
from holdfast.tools._parts import part_of
from holdfast.tools._statistics import counted
from holdfast.tools._tool import (
    DEFAULT_LIMIT,
    AgentId,
    Arguments,
    Cursor,
    Limit,
    Result,
    Scope,
    tool,
)

# How many agents are searched for names similar to an unknown one.
KNOWN = 1000
MOST_ACTIVE = 20
# Bytes of JSON for each field; the state gets more if there is room.
ROOMS = {
    "name": 500,
    "type": 500,
    "system_prompt": 6000,
    "capabilities": 1000,
    "config": 4000,
    "state": 8000,
    "metadata": 2000,
}

Part = Annotated[
    str | None, Meta(description="Only this: a field or field.key, such as state.notes")
]


class AgentSave(Arguments, frozen=True):
    agent_id: Annotated[AgentId, Meta(description="Id, new or known")]
    name: Annotated[str | None, Meta(description="Name to show")] = None
    type: Annotated[str | None, Meta(description="Kind, such as researcher")] = None
    system_prompt: Annotated[str | None, Meta(description="Its instructions")] = None
    capabilities: Annotated[list[str] | None, Meta(description="What it can do")] = None
    config: Annotated[
        dict[str, Any] | None, Meta(description="Settings, such as the model")
    ] = None
    state: Annotated[dict[str, Any] | None, Meta(description="What it remembers")] = (
        None
    )
    merge_state: Annotated[
        bool | None, Meta(description="Keep the other keys of state")
    ] = None


@tool(
    "Create an agent, or change the one with this id. Use it to keep an agent's"
    " instructions, settings and memory for later. Only what is given changes: what is"
    " null or left out stays as it is, an empty text, list or object clears it; state"
    " is replaced as a whole unless merge_state is true. Gives agent_id, whether it"
    " was created, and its version. Earlier versions stay in its history.",
)
async def agent_save(context: Context, scope: Scope, given: AgentSave) -> Result:
    del scope  # already in the arguments
    id_, now = agents.checked_agent(given.agent_id), context.clock()
    found: list[dict[str, Any] | None] = []

    def changed(before: dict[str, Any] | None) -> Amendment:
        found.append(before)
        old = before or {}
        values = _values(given, old.get("state"))
        return Amendment({"created_at": old.get("created_at", now), **values})

    # An amendment instead of load and save: what another writer sets is not lost.
    draft = AmendDraft(("created_at", "state"), changed)
    how = save.Options(start=Start(kind=agents.KIND, agent=id_, anew=True))
    thread = agents.thread_of(id_)
    saved = await save.save(context, thread, draft, how, if_changed=True)
    return {
        "agent_id": id_,
        "created": found[-1] is None,
        "version": saved.step,
        "updated_at": moment(saved.saved_at),
    }


def _values(given: AgentSave, state: object) -> dict[str, object]:
    fields = {
        "name": given.name,
        "type": given.type,
        "system_prompt": given.system_prompt,
        "capabilities": given.capabilities,
        "config": given.config,
        "state": given.state,
    }
    if given.merge_state and given.state is not None and isinstance(state, dict):
        fields["state"] = cast("dict[str, Any]", state) | given.state
    # Empty values are removed.
    return {name: value or UNSET for name, value in fields.items() if value is not None}


class AgentLoad(Arguments, frozen=True):
    agent_id: AgentId
    part: Part = None
    cursor: Cursor = None


@tool(
    "Read one agent: name, type, system_prompt, capabilities, config, state, metadata"
    " and the ids of its active conversations. Use it to recall what was kept, and"
    " before changing state. Long values are shortened and marked '… [+N characters]';"
    " with part you get one value in full, in pieces if it is very long: call again"
    " with the cursor until that is null.",
    read_only=True,
)
async def agent_load(context: Context, scope: Scope, given: AgentLoad) -> Result:
    try:
        agent = await agents.load(context, given.agent_id)
    except NotFound:
        raise await missing(context, scope, given.agent_id) from None
    values = {name: getattr(agent, name) for name in ROOMS}
    if given.part is None:
        return _shown(agent, values)
    about: Result = {"agent_id": agent.id, "part": shortened(given.part, 1000)}
    return piece(about, part_of(values, given.part), given.cursor)


def _shown(agent: Agent, values: Mapping[str, object]) -> Result:
    active = agent.active_conversations
    about: Result = {
        "agent_id": agent.id,
        **shown_fields(values, ROOMS),
        "active_conversations": shortened(active[:MOST_ACTIVE], 2000),
        "active_conversation_count": len(active),
        "version": agent.version,
        "created_at": moment(agent.created_at),
        "updated_at": moment(agent.updated_at),
    }
    # The state is the most important field: it gets all the room that is left.
    room = LARGEST - BRIEF - size({**about, "state": None})
    about["state"] = shortened(values["state"], room)
    cut = cut_fields({name: about[name] for name in ROOMS}, values)
    return about | note_of_cuts("agent_load", cut)


class AgentDelete(Arguments, frozen=True):
    agent_id: AgentId


@tool(
    "Delete an agent with all its conversations and all its checkpoints, for good:"
    " nothing of it can be brought back. Use it only when the user asked for exactly"
    " this; conversation_delete removes a single conversation. Gives how many agents"
    " were deleted (0 if there was none with this id) and how many conversations and"
    " checkpoints went with it.",
    destructive=True,
)
async def agent_delete(context: Context, scope: Scope, given: AgentDelete) -> Result:
    del scope
    found = await counted(context, Scope(agent=given.agent_id))
    deleted = await agents.delete(context, [given.agent_id])
    result: Result = {
        "deleted": deleted,
        "conversations": found["conversations"],
        "checkpoints": found["agent_checkpoints"],
    }
    if not deleted:
        result["note"] = f"There was no agent {echo(given.agent_id)}."
    return result


class AgentList(Arguments, frozen=True):
    type: Annotated[str | None, Meta(description="Only agents of this type")] = None
    limit: Limit = None
    cursor: Cursor = None


@tool(
    "List agents, last used first: agent_id, name, type, capabilities, version and"
    " times, without prompts and state (agent_load gives those). Use it to find a"
    " valid agent_id. Where cursor is not null there are more: call again with it.",
    read_only=True,
)
async def agent_list(context: Context, scope: Scope, given: AgentList) -> Result:
    after = None if given.cursor is None else number(given.cursor)

    async def fetch(limit: int) -> Page[Agent]:
        if scope.agent is None:
            return await agents.list_agents(context, given.type, limit, after)
        own = await agents.find(context, scope.agent)
        fits = own is not None and given.type in (None, own.type)
        return Page((own,) if own is not None and fits else ())

    shown, cursor = await fitting_page(fetch, _listed, given.limit or DEFAULT_LIMIT)
    return {"agents": shown, "cursor": cursor}


def _listed(agent: Agent) -> Result:
    return {
        "agent_id": agent.id,
        "name": shortened(agent.name, 500),
        "type": shortened(agent.type, 500),
        "capabilities": shortened(agent.capabilities, 1000),
        "version": agent.version,
        "created_at": moment(agent.created_at),
        "updated_at": moment(agent.updated_at),
    }


async def known_agent(context: Context, scope: Scope, id_: str) -> None:
    """Refuse an agent that does not exist."""
    thread = await context.find_thread(agents.thread_of(id_))
    if thread is None or thread.head is None:
        raise await missing(context, scope, id_)


async def missing(context: Context, scope: Scope, id_: str) -> Refusal:
    """The refusal of an unknown agent, with similar names."""
    query = ThreadsQuery(kind=agents.KIND, agent=scope.agent, limit=KNOWN)
    threads = await listing.threads(context, query)
    known = [thread.id.removeprefix(agents.PREFIX) for thread in threads]
    hint = suggestion(id_, known) or "There are no agents yet: agent_save makes one. "
    return Refusal(
        "not_found",
        f"there is no agent {echo(id_)}",
        f"{hint}agent_list gives all ids.",
    )


AGENT_TOOLS = (agent_save, agent_load, agent_delete, agent_list)
