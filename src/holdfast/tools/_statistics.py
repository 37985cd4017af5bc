"""The tool that counts what the store holds."""

from __future__ import annotations

from holdfast._engine.context import Context
from holdfast._engine.records import agent_checkpoints, agents, conversations
from holdfast._engine.records.conversations import ListQuery
from holdfast._engine.upkeep import statistics
from holdfast.tools._tool import Arguments, Result, Scope, tool


class PersistenceStats(Arguments, frozen=True):
    pass


@tool(
    "Count what the store holds: agents, conversations, messages, documents and"
    " checkpoints, and the bytes they take. Use it to answer how much there is; the"
    " lists give the ids. Takes no arguments.",
    read_only=True,
    per_owner=True,
)
async def persistence_stats(
    context: Context, scope: Scope, given: PersistenceStats
) -> Result:
    del given  # it has no arguments
    if scope.bound:
        return await counted(context, scope)
    found = await statistics.statistics(context)
    return {
        "agents": found.agents,
        "conversations": found.conversations,
        "messages": found.messages,
        "documents": found.documents,
        "agent_checkpoints": found.agent_checkpoints,
        "threads": found.threads,
        "saved_states": found.checkpoints,
        "logical_bytes": found.logical_bytes,
        "stored_bytes": found.stored_bytes,
        "file_bytes": found.file_bytes,
    }


async def counted(context: Context, scope: Scope) -> Result:
    """The counts within a scope; sizes are known only for the whole store."""
    query = ListQuery(agent=scope.agent, owner=scope.owner, limit=None)
    found = await conversations.summaries(context, query)
    result: Result = {
        "conversations": len(found),
        "messages": sum(summary.messages for summary in found),
    }
    if scope.agent is None or scope.owner is not None:
        return result
    pinned = await agent_checkpoints.checkpoints(
        context, scope.agent, kind=None, limit=None, before=None
    )
    own = await context.find_thread(agents.thread_of(scope.agent))
    return {"agents": int(own is not None), **result, "agent_checkpoints": len(pinned)}


STATISTICS_TOOLS = (persistence_stats,)
