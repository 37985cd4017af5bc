"""The task stores: with versions, for several replicas, and without."""

from __future__ import annotations

from typing import Unpack

from a2a.server.cluster import (
    ConcurrentTaskModificationError,
    StoredTask,
    TaskVersion,
    VersionedTaskStore,
)
from a2a.server.context import ServerCallContext
from a2a.server.events.event_queue import Event
from a2a.server.owner_resolver import OwnerResolver, resolve_user_scope
from a2a.server.tasks.task_store import TaskStore
from a2a.types.a2a_pb2 import ListTasksRequest, ListTasksResponse, Task, TaskState

from holdfast.adapters.a2a._listing import page_of
from holdfast.adapters.a2a._tasks import FoundTask, StoredHead, Tasks
from holdfast.operations import OpenOptions
from holdfast.operations.stores import StoreOrAddress, UsedStore, settled


class HoldfastTaskStore(TaskStore):
    """Tasks for one server; of two writers of a task, the later one wins.

    ``store`` is a `Store` or an `AsyncStore`, or an address, which is opened with the
    options of `holdfast.open`. A task belongs to the owner that ``owner_resolver``
    gives for the call, and is not found by others.
    """

    def __init__(
        self,
        store: StoreOrAddress,
        *,
        owner_resolver: OwnerResolver = resolve_user_scope,
        **options: Unpack[OpenOptions],
    ) -> None:
        self._used = UsedStore(store, **options)
        self._tasks = Tasks(self._used.awaited)
        self._owner = owner_resolver

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Save a task, durable when this returns."""
        owner, copy = self._owner(context), _copy(task)

        async def change() -> None:
            while True:
                found = await self._tasks.find_head(owner, copy.id)
                try:
                    await self._tasks.put(owner, copy, None, found)
                except ConcurrentTaskModificationError:
                    continue
                return

        await settled(change())

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        """A task of the caller, ``None`` if there is none."""
        found = await self._tasks.find(self._owner(context), task_id)
        return found.task if found else None

    async def list(
        self, params: ListTasksRequest, context: ServerCallContext
    ) -> ListTasksResponse:
        """A page of the caller's tasks, the latest change of status first."""
        return await page_of(self._tasks, self._owner(context), params)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete a task of the caller, with its events and push configs."""
        await settled(self._tasks.delete(self._owner(context), task_id))

    async def close(self) -> None:
        """Close the store if it was opened here."""
        await self._used.close()


class HoldfastVersionedTaskStore(VersionedTaskStore):
    """Tasks for several replicas: a write over an outdated version is refused.

    The event that made a state is appended in the same transaction; a
    `HoldfastTaskEventStream` over the same store delivers it. The arguments are those
    of `HoldfastTaskStore`.
    """

    def __init__(
        self,
        store: StoreOrAddress,
        *,
        owner_resolver: OwnerResolver = resolve_user_scope,
        **options: Unpack[OpenOptions],
    ) -> None:
        self._used = UsedStore(store, **options)
        self._tasks = Tasks(self._used.awaited)
        self._owner = owner_resolver

    @property
    def as_task_store(self) -> HoldfastTaskStore:
        """The same tasks without versions."""
        store = self._used.awaited
        return HoldfastTaskStore(store, owner_resolver=self._owner)

    async def save(
        self,
        task: Task,
        *,
        event: Event | None = None,
        prev: Task | None = None,
        prev_version: TaskVersion,
        context: ServerCallContext,
    ) -> TaskVersion:
        """Save a task with its eventand return its version.

        `ConcurrentTaskModificationError` if ``prev_version`` is not the stored one. A
        cancellation needs no version, and is refused if the task has ended.
        """
        del prev  # only the difference is stored anyway
        owner, copy = self._owner(context), _copy(task)
        if copy.status.state == TaskState.TASK_STATE_CANCELED:
            return await settled(self._cancel(owner, copy, event))

        async def change() -> TaskVersion:
            found = await self._tasks.find_head(owner, copy.id)
            if _version(found) != prev_version:
                raise ConcurrentTaskModificationError(copy.id)
            return TaskVersion(await self._tasks.put(owner, copy, event, found))

        return await settled(change())

    async def _cancel(self, owner: str, task: Task, event: Event | None) -> TaskVersion:
        while True:
            found = await self._tasks.find_head(owner, task.id)
            if found is None or found.has_ended:
                raise ConcurrentTaskModificationError(task.id)
            try:
                return TaskVersion(await self._tasks.put(owner, task, event, found))
            except ConcurrentTaskModificationError:
                continue  # the agent saved meanwhile

    async def get(self, task_id: str, context: ServerCallContext) -> StoredTask | None:
        """A task of the caller with its version, ``None`` if there is none."""
        found = await self._tasks.find(self._owner(context), task_id)
        return StoredTask(found.task, _version(found)) if found else None

    async def list(
        self, params: ListTasksRequest, context: ServerCallContext
    ) -> ListTasksResponse:
        """A page of the caller's tasks, the latest change of status first."""
        return await page_of(self._tasks, self._owner(context), params)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete a task of the caller, with its events and push configs."""
        await settled(self._tasks.delete(self._owner(context), task_id))

    async def close(self) -> None:
        """Close the store if it was opened here."""
        await self._used.close()


def _version(found: FoundTask | StoredHead | None) -> TaskVersion:
    return TaskVersion(found.version) if found else TaskVersion.MISSING


def _copy(task: Task) -> Task:
    """The task as it is now: the server goes on to change it."""
    copy = Task()
    copy.CopyFrom(task)
    return copy
