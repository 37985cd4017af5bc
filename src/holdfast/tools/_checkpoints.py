"""The tools for an agent's checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from holdfast._engine.context import Context
from holdfast._engine.records import agent_checkpoints, restore
from holdfast._engine.records.agent_checkpoints import CheckpointRequest
from holdfast._values.records import Page
from holdfast.agents import AgentCheckpoint
from holdfast.errors import NotFound
from holdfast.tools._agents import known_agent
from holdfast.tools._bounds import fitting_page, moment, number, shortened
from holdfast.tools._effects import left_behind
from holdfast.tools._errors import Refusal, echo, listed, suggestion
from holdfast.tools._tool import (
    DEFAULT_LIMIT,
    AgentId,
    Arguments,
    Cursor,
    Id,
    Limit,
    Result,
    Scope,
    tool,
)

# How many checkpoints are searched for names similar to an unknown one.
KNOWN = 200
MOST_IDS = 50

Named = Annotated[Id, Meta(description="Its id, a beginning of it, or its name")]
Kind = Literal["automatic", "manual", "pre_operation", "recovery"]


class CheckpointCreate(Arguments, frozen=True):
    agent_id: AgentId
    name: Annotated[
        str | None, Meta(description="Name to find it by, such as before-refund")
    ] = None
    description: Annotated[str | None, Meta(description="Why it was made")] = None


@tool(
    "Keep an agent and all its conversations as they are now, together, so that"
    " checkpoint_restore can bring exactly this back. Use it before anything risky and"
    " at milestones; nothing is copied, it costs next to nothing. Every call makes"
    " another one. Gives its checkpoint_id, and how many conversations and messages it"
    " holds.",
    idempotent=False,
)
async def checkpoint_create(
    context: Context, scope: Scope, given: CheckpointCreate
) -> Result:
    await known_agent(context, scope, given.agent_id)
    wanted = CheckpointRequest(name=given.name, description=given.description)
    made = await agent_checkpoints.create(context, given.agent_id, wanted)
    assert made is not None
    return _shown(made)


def _shown(checkpoint: AgentCheckpoint) -> Result:
    return {
        "checkpoint_id": checkpoint.id,
        "name": checkpoint.name,
        "kind": checkpoint.kind,
        "description": shortened(checkpoint.description, 1000),
        "conversations": checkpoint.conversations,
        "messages": checkpoint.messages,
        "bytes": checkpoint.size,
        "created_at": moment(checkpoint.created_at),
    }


class CheckpointRestore(Arguments, frozen=True):
    agent_id: AgentId
    checkpoint: Named


@tool(
    "Put an agent and all its conversations back to a checkpoint, all or nothing."
    " Nothing is lost: a recovery checkpoint of the present is taken first, and undo"
    " is its id; restoring that one brings everything back as it was. Gives what was"
    " rewound (went back), revived (had been deleted) and removed (began after the"
    " checkpoint), by conversation_id. What tools did outside since then cannot be put"
    " back: left_behind says which calls stay in force.",
    idempotent=False,
)
async def checkpoint_restore(
    context: Context, scope: Scope, given: CheckpointRestore
) -> Result:
    await known_agent(context, scope, given.agent_id)
    try:
        done = await restore.restore(context, given.agent_id, given.checkpoint)
    except NotFound as error:
        raise await _missing(context, given, error) from None
    return {
        "agent_id": given.agent_id,
        "restored": _shown(done.checkpoint),
        "undo": done.recovery.id,
        "rewound": _ids(done.rewound),
        "revived": _ids(done.revived),
        "removed": _ids(done.removed),
        "left_behind": left_behind(done.effects),
    }


def _ids(ids: Sequence[str]) -> Result:
    return {"count": len(ids), "conversation_ids": shortened(ids[:MOST_IDS], 5000)}


class CheckpointList(Arguments, frozen=True):
    agent_id: AgentId
    kind: Annotated[Kind | None, Meta(description="Only those made for this")] = None
    limit: Limit = None
    cursor: Cursor = None


@tool(
    "List an agent's checkpoints, newest first: checkpoint_id, name, kind, how many"
    " conversations and messages each holds, and when it was made, without contents."
    " Use it to find what to restore. Kinds: manual (made on request), automatic (made"
    " by a timer), pre_operation (before something risky), recovery (made by"
    " checkpoint_restore, to undo it). Where cursor is not null there are more: call"
    " again with it.",
    read_only=True,
)
async def checkpoint_list(
    context: Context, scope: Scope, given: CheckpointList
) -> Result:
    await known_agent(context, scope, given.agent_id)
    before = None if given.cursor is None else number(given.cursor)

    async def fetch(limit: int) -> Page[AgentCheckpoint]:
        return await agent_checkpoints.checkpoints(
            context, given.agent_id, kind=given.kind, limit=limit, before=before
        )

    shown, cursor = await fitting_page(fetch, _shown, given.limit or DEFAULT_LIMIT)
    return {"checkpoints": shown, "cursor": cursor}


class CheckpointDelete(Arguments, frozen=True):
    agent_id: AgentId
    # Not a name: several checkpoints may share one, and a repeated call would delete
    # the next of them.
    checkpoint_id: Annotated[Id, Meta(description="Its whole id, not its name")]


@tool(
    "Delete one checkpoint of an agent, for good. The agent and its conversations stay"
    " as they are, but conversations deleted meanwhile that only this checkpoint still"
    " held cannot be restored any more. Gives how many were deleted, 0 if there was"
    " none with this id.",
    destructive=True,
)
async def checkpoint_delete(
    context: Context, scope: Scope, given: CheckpointDelete
) -> Result:
    del scope  # already in the arguments
    agent, id_ = given.agent_id, given.checkpoint_id
    found = await agent_checkpoints.find_whole(context, agent, id_)
    if found is None:
        note = f"Agent {echo(agent)} had no checkpoint with the id {echo(id_)}."
        return {"deleted": 0, "note": note}
    if found.id != id_:
        raise Refusal(
            "invalid_arguments",
            f"checkpoint_id: {echo(id_)} is the name of a checkpoint and not its id",
            f"Pass {echo(found.id)} to delete the newest of this name.",
        )
    return {"deleted": await restore.delete(context, agent, id_)}


async def _missing(
    context: Context, given: CheckpointRestore, error: NotFound
) -> Refusal:
    """The refusal of an unknown or ambiguous checkpoint, with similar names."""
    if error.matches:
        return Refusal(
            error.code,
            f"several checkpoints begin with {echo(given.checkpoint)}",
            f"Pass one of {listed(error.matches[:5])}.",
        )
    page = await agent_checkpoints.checkpoints(
        context, given.agent_id, kind=None, limit=KNOWN, before=None
    )
    known = [name for found in page for name in (found.name, found.id)]
    hint = suggestion(given.checkpoint, known) or "It has none: checkpoint_create. "
    return Refusal(
        "not_found",
        f"agent {echo(given.agent_id)} has no checkpoint {echo(given.checkpoint)}",
        f"{hint}checkpoint_list gives all of them.",
    )


CHECKPOINT_TOOLS = (
    checkpoint_create,
    checkpoint_restore,
    checkpoint_list,
    checkpoint_delete,
)
