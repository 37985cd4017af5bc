"""The checkpoints of workflows."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any, Unpack

from agent_framework import WorkflowCheckpoint, WorkflowCheckpointException

from holdfast import AsyncThread, Checkpoint
from holdfast.adapters.agent_framework._state import (
    PREVIOUS,
    Values,
    checkpoint_of,
    values_of,
)
from holdfast.adapters.agent_framework._types import Types
from holdfast.errors import Conflict, FormatMismatch, NotFound, Unstorable
from holdfast.operations import OpenOptions
from holdfast.operations.names import escaped
from holdfast.operations.stores import StoreOrAddress, UsedStore, settled

KIND = "workflow"
# The kind of its checkpoints.
SUPERSTEP = "superstep"


class HoldfastCheckpointStorage:
    """A `CheckpointStorage` for ``WorkflowBuilder(checkpoint_storage=...)``.

    ``store`` is an address, which is opened with the options of `holdfast.open`, or a
    `Store` or `AsyncStore`. ``scope`` keeps the workflows of one tenant or user apart
    from those of all others. ``allow`` are the dataclasses, pydantic models and enums
    that messages and states have; the classes of their fields are allowed with them.

    A run is a thread. A run that is resumed from a checkpoint in its middle, or by two
    workers at once, goes on in a fork: no checkpoint is replaced.
    """

    def __init__(
        self,
        store: StoreOrAddress,
        *,
        allow: Iterable[type] = (),
        **options: Unpack[OpenOptions],
    ) -> None:
        self._types = Types(allow)
        self._used = UsedStore(store, **options)
        self._store = self._used.awaited

    async def close(self) -> None:
        """Close the store if it was opened here."""
        await self._used.close()

    # --- the protocol -----------------------------------------------------------------

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Store a checkpoint, durable when this returns, and return its id.

        `Unstorable` names the path and the class of an object that is not allowed.
        Saving the same checkpoint again changes nothing; a different one with the same
        id is refused, because checkpoints are never replaced.
        """
        values: Any = self._types.plain(values_of(checkpoint), "checkpoint")
        await settled(self._save(checkpoint, values))
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """A checkpoint by its id, in any run of the scope."""
        found = await self._find(checkpoint_id)
        if found is None:
            raise _missing(checkpoint_id)
        return await self._load(found)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """All checkpoints of a workflow in the order in which they were saved."""
        return [await self._load(found) for found in await self._all(workflow_name)]

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """The ids of all checkpoints of a workflow, in that order; reads no state."""
        return [found.id for found in await self._all(workflow_name)]

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """The head of the run that was saved, forked, rewound or labelled last."""
        prefix = _prefix(workflow_name)
        for run in await self._store.threads(prefix=prefix, limit=1):
            if run.head is not None:
                return await self._load(run.head)
        return None

    async def delete(self, checkpoint_id: str) -> bool:
        """Delete a checkpoint and keep its descendants. ``False`` if there is none."""
        found = await self._find(checkpoint_id)
        if found is None:
            return False
        return await settled(self._delete(found))

    # --- within -----------------------------------------------------------------------

    async def _save(self, checkpoint: WorkflowCheckpoint, values: Values) -> None:
        id_, prefix = checkpoint.checkpoint_id, _prefix(checkpoint.workflow_name)
        previous = await self._find(checkpoint.previous_checkpoint_id)
        if previous is None and checkpoint.previous_checkpoint_id is not None:
            values = {**values, PREVIOUS: checkpoint.previous_checkpoint_id}
        own = self._store.thread(f"{prefix}{escaped(id_)}", kind=KIND)

        async def grow(run: AsyncThread) -> None:
            await run.save(values, id=id_, expect=previous, kind=SUPERSTEP)

        try:
            if previous is not None:
                run = self._store.thread(previous.thread)
                if run.id.startswith(prefix) and await _unless_moved(grow(run)):
                    return
                if await own.head is None:
                    await run.fork(own.id, previous)
            await grow(own)
        except Conflict as conflict:
            raise WorkflowCheckpointException(
                f"Checkpoint {id_} was not saved: {conflict}"
            ) from conflict

    async def _delete(self, found: Checkpoint) -> bool:
        run = self._store.thread(found.thread)
        try:
            return await run.delete(found) > 0
        except Conflict as conflict:
            if conflict.code != "last_checkpoint":
                raise WorkflowCheckpointException(
                    f"Checkpoint {found.id} was not deleted: {conflict}"
                ) from conflict
        return await run.delete(expect=found) > 0

    async def _find(self, id_: str | None) -> Checkpoint | None:
        if id_ is None:
            return None
        try:
            found = await self._store.get(id_)
        except (NotFound, Unstorable):
            return None
        return found if found.id == id_ else None

    async def _all(self, name: str) -> list[Checkpoint]:
        runs = await self._store.threads(prefix=_prefix(name), limit=None)
        families = {run.family: run.id for run in runs}
        found = [
            checkpoint
            for run in families.values()
            for checkpoint in await self._store.thread(run).tree(limit=None)
        ]
        return sorted(found, key=lambda checkpoint: checkpoint.seq)

    async def _load(self, found: Checkpoint) -> WorkflowCheckpoint:
        state = await self._store.load(found)
        try:
            return checkpoint_of(self._types.revive(state), found.id, found.parent)
        except (FormatMismatch, KeyError, TypeError, AttributeError) as error:
            raise WorkflowCheckpointException(
                f"Checkpoint {found.id} cannot be decoded: {error}"
            ) from error


async def _unless_moved(saving: Coroutine[Any, Any, None]) -> bool:
    """Save on top of a run; False if the run has moved past the previous checkpoint."""
    try:
        await saving
    except Conflict as conflict:
        if conflict.code != "head_moved":
            raise
        return False
    return True


def _prefix(workflow_name: str) -> str:
    return f"{KIND}:{escaped(workflow_name)}/"


def _missing(id_: str) -> WorkflowCheckpointException:
    return WorkflowCheckpointException(f"No checkpoint found with ID {id_}")
