"""A store's agents, for the sync and the async API."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from datetime import timedelta
from typing import Any, Literal, overload

from holdfast._api import autosave
from holdfast._api.autosave import AsyncAutoCheckpoints, AutoCheckpoints, OnError
from holdfast._api.runner import AsyncRunner, Runner
from holdfast._api.thread import AsyncThread, Thread
from holdfast._engine.records import (
    agent_checkpoints,
    agent_snapshots,
    agents,
    restore,
)
from holdfast._engine.threads.lineage import Reference
from holdfast._messages.repair import How
from holdfast._port import Start
from holdfast._values.arguments import checked_flag, checked_mapping
from holdfast._values.records import Page
from holdfast._values.reference import HEAD
from holdfast.agents import (
    Agent,
    AgentCheckpoint,
    AgentSnapshot,
    Restored,
    RestorePreview,
)
from holdfast.conversations import Conversation

FIVE_MINUTES = timedelta(minutes=5)


class Agents:
    """A store's agents and their checkpoints; ``store.agents``.

    An agent is the thread ``agent:<id>``, with its history.
    """

    def __init__(self, runner: Runner, running: set[AutoCheckpoints]) -> None:
        self._runner, self._running = runner, running

    def thread(self, id: str) -> Thread:
        """The thread of an agent, for its history."""
        return Thread(
            self._runner, agents.thread_of(id), Start(kind=agents.KIND, agent=id)
        )

    def save(self, agent: Agent) -> Agent:
        """Save an agent and give it back, with its version and times.

        An agent that was loaded is saved only on top of what it was loaded from: if
        another writer saved since, `Conflict` is raised. An agent made by hand replaces
        the stored one.
        """
        return self._runner.run(agents.save, agent)

    def load(self, id: str, ref: Reference = HEAD) -> Agent:
        """An agent as it is, or as it was at a checkpoint of its thread."""
        return self._runner.run(agents.load, id, ref)

    def find(self, id: str) -> Agent | None:
        """An agent, ``None`` if there is none."""
        return self._runner.run(agents.find, id)

    def list(
        self,
        *,
        type: str | None = None,
        limit: int | None = 100,
        after: int | None = None,
    ) -> Page[Agent]:
        """Agents, last used first, without their active conversations."""
        return self._runner.run(agents.list_agents, type, limit, after)

    def delete(self, *ids: str) -> int:
        """Delete agents, their conversations and checkpoints; returns how many."""
        return self._runner.run(agents.delete, ids)

    # --- checkpoints ------------------------------------------------------------------

    def checkpoint(
        self,
        agent_id: str,
        name: str | None = None,
        kind: str = "manual",
        description: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,
        keep: int | None = None,
    ) -> AgentCheckpoint:
        """Pin an agent and all its conversations as they are, together.

        Nothing is copied. ``kind`` is manual, automatic, pre_operation or recovery;
        with ``keep`` only so many of this kind stay, other kinds are not touched. A
        conversation that cannot be read raises `Corrupt`.
        """
        wanted = agent_checkpoints.CheckpointRequest(
            name=name,
            kind=kind,
            description=description,
            metadata=None
            if metadata is None
            else dict(checked_mapping(metadata, "metadata")),
            id=id,
        )
        return self._runner.run(restore.create_and_tidy, agent_id, wanted, keep)

    def checkpoints(
        self,
        agent_id: str,
        *,
        kind: str | None = None,
        limit: int | None = 100,
        before: int | None = None,
    ) -> Page[AgentCheckpoint]:
        """An agent's checkpoints, newest first."""
        return self._runner.run(
            agent_checkpoints.checkpoints,
            agent_id,
            kind=kind,
            limit=limit,
            before=before,
        )

    def get_checkpoint(self, id: str) -> AgentCheckpoint:
        """The checkpoint with an id, whichever agent it is of; its record names that.

        `NotFound` if there is none, or with the code ``ambiguous`` if two agents have
        one of that id.
        """
        return self._runner.run(agent_snapshots.get_checkpoint, id)

    def load_checkpoint(
        self, agent_id: str, checkpoint: AgentCheckpoint | str
    ) -> AgentSnapshot:
        """The agent and the conversations in a checkpoint; nothing is restored.

        Its ``agent`` is as it was, and its ``conversations`` come without messages. The
        checkpoint is given as a record, an id, the beginning of an id, or a name.
        """
        return self._runner.run(agent_snapshots.load_checkpoint, agent_id, checkpoint)

    def load_conversation(
        self,
        agent_id: str,
        checkpoint: AgentCheckpoint | str,
        id: str,
        *,
        repair: How | None = None,
    ) -> Conversation:
        """A conversation as a checkpoint holds it, also one that was deleted since.

        ``repair`` is the same as for ``conversations.load``.
        """
        return self._runner.run(
            agent_snapshots.load_conversation, agent_id, checkpoint, id, repair=repair
        )

    @overload
    def restore(
        self,
        agent_id: str,
        checkpoint: AgentCheckpoint | str,
        *,
        dry_run: Literal[False] = False,
    ) -> Restored: ...
    @overload
    def restore(
        self, agent_id: str, checkpoint: AgentCheckpoint | str, *, dry_run: bool
    ) -> RestorePreview: ...
    def restore(
        self, agent_id: str, checkpoint: AgentCheckpoint | str, *, dry_run: bool = False
    ) -> RestorePreview:
        """Put an agent and its conversations back to a checkpoint, all or nothing.

        Everything is verified first, and the present state is kept as a recovery
        checkpoint: restoring that one undoes this. Conversations that were made later
        are deleted, and deleted ones are restored. The checkpoint is given as a record,
        an id, the beginning of an id, or a name. With ``dry_run`` nothing is written:
        the answer is the `RestorePreview` of what would change, also in a store that is
        open for reading only.
        """
        if checked_flag(dry_run, "dry_run"):
            return self._runner.run(restore.preview, agent_id, checkpoint)
        return self._runner.run(restore.restore, agent_id, checkpoint)

    def delete_checkpoint(
        self, agent_id: str, checkpoint: AgentCheckpoint | str
    ) -> int:
        """Delete a checkpoint and what only it held; 0 if it was not there.

        It is given as a record, a whole id or a name.
        """
        return self._runner.run(restore.delete, agent_id, checkpoint)

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
        plan = autosave.plan(agent_ids, every, keep, on_error)
        return autosave.AutoCheckpoints(self._runner, plan, self._running)

    def close(self) -> None:
        """Stop the automatic checkpoints; closing the store calls this."""
        with ExitStack() as stopping:
            for loop in tuple(self._running):
                stopping.callback(loop.stop)


class AsyncAgents:
    """Like `Agents`, awaited."""

    def __init__(self, runner: AsyncRunner, running: set[AsyncAutoCheckpoints]) -> None:
        self._runner, self._running = runner, running

    def thread(self, id: str) -> AsyncThread:
        return AsyncThread(
            self._runner, agents.thread_of(id), Start(kind=agents.KIND, agent=id)
        )

    async def save(self, agent: Agent) -> Agent:
        return await self._runner.run(agents.save, agent)

    async def load(self, id: str, ref: Reference = HEAD) -> Agent:
        return await self._runner.run(agents.load, id, ref)

    async def find(self, id: str) -> Agent | None:
        return await self._runner.run(agents.find, id)

    async def list(
        self,
        *,
        type: str | None = None,
        limit: int | None = 100,
        after: int | None = None,
    ) -> Page[Agent]:
        return await self._runner.run(agents.list_agents, type, limit, after)

    async def delete(self, *ids: str) -> int:
        return await self._runner.run(agents.delete, ids)

    # --- checkpoints ------------------------------------------------------------------

    async def checkpoint(
        self,
        agent_id: str,
        name: str | None = None,
        kind: str = "manual",
        description: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        id: str | None = None,
        keep: int | None = None,
    ) -> AgentCheckpoint:
        wanted = agent_checkpoints.CheckpointRequest(
            name=name,
            kind=kind,
            description=description,
            metadata=None
            if metadata is None
            else dict(checked_mapping(metadata, "metadata")),
            id=id,
        )
        return await self._runner.run(restore.create_and_tidy, agent_id, wanted, keep)

    async def checkpoints(
        self,
        agent_id: str,
        *,
        kind: str | None = None,
        limit: int | None = 100,
        before: int | None = None,
    ) -> Page[AgentCheckpoint]:
        return await self._runner.run(
            agent_checkpoints.checkpoints,
            agent_id,
            kind=kind,
            limit=limit,
            before=before,
        )

    async def get_checkpoint(self, id: str) -> AgentCheckpoint:
        return await self._runner.run(agent_snapshots.get_checkpoint, id)

    async def load_checkpoint(
        self, agent_id: str, checkpoint: AgentCheckpoint | str
    ) -> AgentSnapshot:
        return await self._runner.run(
            agent_snapshots.load_checkpoint, agent_id, checkpoint
        )

    async def load_conversation(
        self,
        agent_id: str,
        checkpoint: AgentCheckpoint | str,
        id: str,
        *,
        repair: How | None = None,
    ) -> Conversation:
        return await self._runner.run(
            agent_snapshots.load_conversation, agent_id, checkpoint, id, repair=repair
        )

    @overload
    async def restore(
        self,
        agent_id: str,
        checkpoint: AgentCheckpoint | str,
        *,
        dry_run: Literal[False] = False,
    ) -> Restored: ...
    @overload
    async def restore(
        self, agent_id: str, checkpoint: AgentCheckpoint | str, *, dry_run: bool
    ) -> RestorePreview: ...
    async def restore(
        self, agent_id: str, checkpoint: AgentCheckpoint | str, *, dry_run: bool = False
    ) -> RestorePreview:
        if checked_flag(dry_run, "dry_run"):
            return await self._runner.run(restore.preview, agent_id, checkpoint)
        return await self._runner.run(restore.restore, agent_id, checkpoint)

    async def delete_checkpoint(
        self, agent_id: str, checkpoint: AgentCheckpoint | str
    ) -> int:
        return await self._runner.run(restore.delete, agent_id, checkpoint)

    def autosave(
        self,
        *agent_ids: str,
        every: timedelta | float = FIVE_MINUTES,
        keep: int | None = 10,
        on_error: OnError | None = None,
    ) -> AsyncAutoCheckpoints:
        plan = autosave.plan(agent_ids, every, keep, on_error)
        return autosave.AsyncAutoCheckpoints(self._runner, plan, self._running)

    async def close(self) -> None:
        async with AsyncExitStack() as stopping:
            for loop in tuple(self._running):
                stopping.push_async_callback(loop.stop)
