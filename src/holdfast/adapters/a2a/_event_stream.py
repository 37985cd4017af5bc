"""The events of tasks, for subscribers on any replica."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Unpack

from a2a.server.cluster import TaskEventStream, TaskVersion, VersionedEvent

from holdfast import Event
from holdfast.adapters.a2a._names import event_stream
from holdfast.adapters.a2a._task_state import event_key, event_of, stored_event
from holdfast.errors import Conflict, NotFound
from holdfast.operations import OpenOptions
from holdfast.operations.stores import StoreOrAddress, UsedStore, settled

# Seconds of one wait for events; then the next begins.
PATIENCE = 30.0


class HoldfastTaskEventStream(TaskEventStream):
    """Delivers the events of tasks to all replicas that share a store.

    Every subscriber gets every event once, in order and without a gap. An event that a
    `HoldfastVersionedTaskStore` saved with its task is not stored again when it is
    published. ``store`` is the same argument as there.
    """

    def __init__(self, store: StoreOrAddress, **options: Unpack[OpenOptions]) -> None:
        self._used = UsedStore(store, **options)

    async def publish(self, task_id: str, event: VersionedEvent) -> None:
        """Append an event for all replicas, durable when this returns."""
        version = _value(event.version)
        stream = self._used.awaited.stream(event_stream(task_id))
        stored = stored_event(event.event, version)
        try:
            await settled(stream.append(stored, key=event_key(event.event, version)))
        except Conflict as conflict:
            # The task was deleted, and there is no more subscribing to it.
            if conflict.code != "thread_deleted":
                raise

    async def subscribe(
        self, task_id: str, *, after: TaskVersion
    ) -> AsyncGenerator[VersionedEvent, None]:
        """The events of a task newer than a version, those to come included.

        It ends if the task is deleted. `NotFound` if events were removed that it has
        not given yet, by a retention or by hand: there would be a gap.
        """
        stream = self._used.awaited.stream(event_stream(task_id))
        cursor: str | None = None
        while True:
            try:
                page = await stream.wait(cursor, timeout=PATIENCE)
            except NotFound:
                if await stream.last is not None:
                    raise
                return
            for event in page:
                cursor = event.cursor
                found = _versioned(event)
                if after.is_missing or found.version.is_after(after):
                    yield found

    async def destroy(self, task_id: str) -> None:
        """Keep the events of a task that has ended: other replicas may be reading them.

        They are removed with the task, or by a retention of the store.
        """

    async def close(self) -> None:
        """Close the store if it was opened here."""
        await self._used.close()


def _versioned(event: Event) -> VersionedEvent:
    version = event.value["version"]
    given = TaskVersion.MISSING if version is None else TaskVersion(version)
    return VersionedEvent(event=event_of(event.value), version=given)


def _value(version: TaskVersion) -> int | str | None:
    if version.is_missing:
        return None
    # The SDK's own stream reads it, too; there is no other way to store a version.
    return version._value  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
