"""Tasks as threads: the base of both task stores."""

from __future__ import annotations

from typing import NamedTuple

from a2a.server.cluster import ConcurrentTaskModificationError
from a2a.server.events.event_queue import Event
from a2a.types.a2a_pb2 import Task

from holdfast import AsyncStore, AsyncThread, Checkpoint
from holdfast.adapters.a2a._names import (
    KIND,
    event_stream,
    push_thread,
    task_thread,
)
from holdfast.adapters.a2a._task_state import (
    event_key,
    state_of,
    step_of,
    stored_event,
    task_of,
)
from holdfast.errors import Conflict, NotFound

TERMINAL = frozenset(
    {
        "TASK_STATE_COMPLETED",
        "TASK_STATE_CANCELED",
        "TASK_STATE_FAILED",
        "TASK_STATE_REJECTED",
    }
)
# The codes of a conflict with another writer of the same task.
OVERTAKEN = frozenset({"head_moved", "thread_exists", "thread_deleted", "entry_taken"})


class FoundTask(NamedTuple):
    """A task as it is stored, with its version."""

    task: Task
    version: int


class StoredHead(NamedTuple):
    """The checkpoint with a task, the task's version, and whether it has ended."""

    head: Checkpoint
    version: int
    has_ended: bool


class Tasks:
    """The tasks of a store."""

    def __init__(self, store: AsyncStore) -> None:
        self.store = store

    def thread(self, owner: str, task_id: str) -> AsyncThread:
        """The thread of a task."""
        name = task_thread(owner, task_id)
        return self.store.thread(name, kind=KIND, owner=owner or None)

    async def find(self, owner: str, task_id: str) -> FoundTask | None:
        """A task of an owner, ``None`` if there is none."""
        try:
            state = await self.thread(owner, task_id).load()
        except NotFound:
            return None
        return FoundTask(task_of(state), state["version"])

    async def find_head(self, owner: str, task_id: str) -> StoredHead | None:
        """Like `find`, without the task itself."""
        thread = self.thread(owner, task_id)
        while (head := await thread.head) is not None:
            try:
                values = await thread.values("version", "task", ref=head)
            except NotFound:
                continue  # it was removed just now
            state = values["task"].get("status", {}).get("state")
            return StoredHead(head, values["version"], state in TERMINAL)
        return None

    async def put(
        self, owner: str, task: Task, event: Event | None, found: StoredHead | None
    ) -> int:
        """Save a task on top of the found one, with its event, and return its version.

        `ConcurrentTaskModificationError` if another writer was faster.
        """
        # Use a greater version than all before it, also than those that a rewind took
        # back: subscribers have seen their events.
        now = self.store.runner.context.clock()
        version = max(found.version + 1, now) if found else max(now, 1)
        thread = self.thread(owner, task.id)
        try:
            async with self.store.transaction() as changes:
                changes.thread(thread.id, kind=KIND, owner=owner or None).save(
                    state_of(task, version),
                    kind=step_of(task),
                    expect=found.head if found else None,
                )
                if event is not None:
                    # The events of a task begin again if the task was deleted, or if a
                    # retention removed its events.
                    stream = changes.stream(
                        event_stream(task.id), owner=owner or None, anew=True
                    )
                    key = event_key(event, version)
                    stream.append(stored_event(event, version), key=key)
        except (Conflict, NotFound) as error:
            if isinstance(error, Conflict) and error.code not in OVERTAKEN:
                raise
            raise ConcurrentTaskModificationError(task.id) from error
        return version

    async def delete(self, owner: str, task_id: str) -> None:
        """Delete a task with its events and push notification configs."""
        if await self.store.delete(task_thread(owner, task_id)):
            stream = self.store.stream(event_stream(task_id))
            await self.store.delete(stream.id, push_thread(task_id))
