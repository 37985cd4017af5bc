"""A store's agents through both doors."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from datetime import timedelta
from typing import Any

from holdfast._api import autosave as _autosave
from holdfast._api.autosave import AsyncAutoCheckpoints, AutoCheckpoints, OnError
from holdfast._api.runner import Passage
from holdfast._api.thread import AsyncThread, Thread
from holdfast._engine.context import Context
from holdfast._engine.records import agent_checkpoints, agents
from holdfast._engine.records import restore as restoring
from holdfast._engine.records.agent_checkpoints import CheckpointRequest
from holdfast._engine.records.agents import KIND, thread_of
from holdfast._engine.threads.lineage import Reference
from holdfast._port import Start, run
from holdfast._values.records import Page
from holdfast._values.reference import HEAD
from holdfast.agents import MANUAL, Agent, AgentCheckpoint, Restored

FIVE_MINUTES = timedelta(minutes=5)


class Agents:
    """A store's agents and their checkpoints; ``store.agents``.

    An agent is the thread ``agent:<id>``, with its history.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._running: set[AutoCheckpoints] = set()

    def thread(self, id: str) -> Thread:  # noqa: A002 - public name
        """The thread of an agent, for its history."""
        return Thread(self._context, thread_of(id), Start(kind=KIND, agent=id))

    def save(self, agent: Agent) -> Agent:
        """Save an agent and give it back, with its version and times.

        One that was loaded is only saved on what it was loaded from: where another
        came first, `Conflict` is raised. One made by hand replaces what is there.
        """
        return run(agents.save(self._context, agent))

    def load(self, id: str, ref: Reference = HEAD) -> Agent:  # noqa: A002
        """An agent as it is, or as it was at a checkpoint of its thread."""
        return run(agents.load(self._context, id, ref))

    def find(self, id: str) -> Agent | None:  # noqa: A002 - public name
        """An agent, ``None`` if there is none."""
        return run(agents.find(self._context, id))

    def list(
        self,
        *,
        type: str | None = None,  # noqa: A002 - public name
        limit: int | None = 100,
        after: int | None = None,
    ) -> Page[Agent]:
        """Agents, last used first, without their active conversations."""
        return run(agents.list_agents(self._context, type, limit, after))

    def delete(self, *ids: str) -> int:
        """Delete agents, their conversations and checkpoints; returns how many."""
        return run(agents.delete(self._context, ids))

    # --- checkpoints ------------------------------------------------------------------

    def checkpoint(
        self,
        agent_id: str,
        name: str | None = None,
        kind: str = MANUAL,
        description: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,  # noqa: A002 - public name
        keep: int | None = None,
    ) -> AgentCheckpoint:
        """Pin an agent and all its conversations as they are, together.

        Nothing is copied. ``kind`` is manual, automatic, pre_operation or recovery;
        with ``keep`` only so many of this kind stay, the others are not touched. What
        cannot be read raises `Corrupt`.
        """
        wanted = CheckpointRequest(
            name=name,
            kind=kind,
            description=description,
            metadata=None if metadata is None else dict(metadata),
            id=id,
        )
        operation = restoring.create_and_tidy(self._context, agent_id, wanted, keep)
        return run(operation)

    def checkpoints(
        self,
        agent_id: str,
        *,
        kind: str | None = None,
        limit: int | None = 100,
        before: int | None = None,
    ) -> Page[AgentCheckpoint]:
        """An agent's checkpoints, newest first."""
        operation = agent_checkpoints.checkpoints(
            self._context, agent_id, kind=kind, limit=limit, before=before
        )
        return run(operation)

    def restore(self, agent_id: str, checkpoint: AgentCheckpoint | str) -> Restored:
        """Put an agent and its conversations back to a checkpoint, all or nothing.

        Everything is verified first, and the present is kept as a recovery checkpoint:
        restoring that undoes it. Conversations that came later go, deleted ones are
        back. The checkpoint is named by record, id, beginning of one, or name.
        """
        return run(restoring.restore(self._context, agent_id, checkpoint))

    def delete_checkpoint(
        self, agent_id: str, checkpoint: AgentCheckpoint | str
    ) -> int:
        """Delete a checkpoint and what only it held; 0 if it was not there.

        It is named by record, whole id or name.
        """
        return run(restoring.delete(self._context, agent_id, checkpoint))

    def autosave(
        self,
        *agent_ids: str,
        every: timedelta | float = FIVE_MINUTES,
        keep: int | None = 10,
        on_error: OnError | None = None,
    ) -> AutoCheckpoints:
        """Automatic checkpoints in the background, for ``with`` or ``start``/``stop``.

        ``every`` is a timedelta or seconds, ``keep`` how many automatic checkpoints
        stay, ``on_error`` is called with the agent's id and the error.
        """
        plan = _autosave.plan(agent_ids, every, keep, on_error)
        return AutoCheckpoints(self._context, plan, self._running)

    def close(self) -> None:
        """Stop what runs in the background; closing the store does it."""
        with ExitStack() as stopping:
            for loop in tuple(self._running):
                stopping.callback(loop.stop)


class AsyncAgents:
    """As `Agents`, awaited."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        self._context = passage.context
        self._running: set[AsyncAutoCheckpoints] = set()

    def thread(self, id: str) -> AsyncThread:  # noqa: A002 - public name
        return AsyncThread(self._passage, thread_of(id), Start(kind=KIND, agent=id))

    async def save(self, agent: Agent) -> Agent:
        return await self._passage.run(agents.save(self._context, agent))

    async def load(self, id: str, ref: Reference = HEAD) -> Agent:  # noqa: A002
        return await self._passage.run(agents.load(self._context, id, ref))

    async def find(self, id: str) -> Agent | None:  # noqa: A002 - public name
        return await self._passage.run(agents.find(self._context, id))

    async def list(
        self,
        *,
        type: str | None = None,  # noqa: A002 - public name
        limit: int | None = 100,
        after: int | None = None,
    ) -> Page[Agent]:
        operation = agents.list_agents(self._context, type, limit, after)
        return await self._passage.run(operation)

    async def delete(self, *ids: str) -> int:
        return await self._passage.run(agents.delete(self._context, ids))

    # --- checkpoints ------------------------------------------------------------------

    async def checkpoint(
        self,
        agent_id: str,
        name: str | None = None,
        kind: str = MANUAL,
        description: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,  # noqa: A002 - public name
        keep: int | None = None,
    ) -> AgentCheckpoint:
        wanted = CheckpointRequest(
            name=name,
            kind=kind,
            description=description,
            metadata=None if metadata is None else dict(metadata),
            id=id,
        )
        operation = restoring.create_and_tidy(self._context, agent_id, wanted, keep)
        return await self._passage.run(operation)

    async def checkpoints(
        self,
        agent_id: str,
        *,
        kind: str | None = None,
        limit: int | None = 100,
        before: int | None = None,
    ) -> Page[AgentCheckpoint]:
        operation = agent_checkpoints.checkpoints(
            self._context, agent_id, kind=kind, limit=limit, before=before
        )
        return await self._passage.run(operation)

    async def restore(
        self, agent_id: str, checkpoint: AgentCheckpoint | str
    ) -> Restored:
        operation = restoring.restore(self._context, agent_id, checkpoint)
        return await self._passage.run(operation)

    async def delete_checkpoint(
        self, agent_id: str, checkpoint: AgentCheckpoint | str
    ) -> int:
        operation = restoring.delete(self._context, agent_id, checkpoint)
        return await self._passage.run(operation)

    def autosave(
        self,
        *agent_ids: str,
        every: timedelta | float = FIVE_MINUTES,
        keep: int | None = 10,
        on_error: OnError | None = None,
    ) -> AsyncAutoCheckpoints:
        plan = _autosave.plan(agent_ids, every, keep, on_error)
        return AsyncAutoCheckpoints(self._passage, plan, self._running)

    async def close(self) -> None:
        async with AsyncExitStack() as stopping:
            for loop in tuple(self._running):
                stopping.push_async_callback(loop.stop)
