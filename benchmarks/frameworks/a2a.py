"""A task of the A2A SDK with our store, and with those that the SDK ships."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from a2a.helpers import new_text_part
from a2a.server.cluster import (
    ConcurrentTaskModificationError,
    TaskVersion,
    VersionedDatabaseTaskStore,
)
from a2a.server.context import ServerCallContext
from a2a.server.tasks import DatabaseTaskStore
from a2a.types.a2a_pb2 import Role, Task, TaskState, TaskStatusUpdateEvent
from sqlalchemy.ext.asyncio import create_async_engine

from benchmarks.frameworks.measured import Measured, main
from holdfast.adapters.a2a import HoldfastVersionedTaskStore

CALLER = ServerCallContext()
TEXT = "A sentence such as agents and people write to one another. " * 6
LOADS, UPDATES = 20, 100


class Versioned:
    """A store with versions, ours or theirs."""

    def __init__(self, store: Any) -> None:
        self.store, self.version = store, TaskVersion.MISSING

    async def save(self, task: Task) -> None:
        event = TaskStatusUpdateEvent(task_id=task.id, status=task.status)
        self.version = await self.store.save(
            task, event=event, prev=None, prev_version=self.version, context=CALLER
        )

    async def load(self) -> Task:
        stored = await self.store.get("task", CALLER)
        self.version = stored.version
        return stored.task


class Unversioned:
    """The store without versions."""

    def __init__(self, store: Any) -> None:
        self.store = store

    async def save(self, task: Task) -> None:
        await self.store.save(task, CALLER)

    async def load(self) -> Task:
        return await self.store.get("task", CALLER)


class Peer:
    """A kind of store, and how one is opened and closed."""

    def __init__(self, name: str, path: Path, door: Any) -> None:
        self.name, self.path, self.door = name, path, door

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Any, None]:
        """A store of the SDK in a file."""
        engine = create_async_engine(f"sqlite+aiosqlite:///{self.path}")
        kind = {"versioned": VersionedDatabaseTaskStore, "plain": DatabaseTaskStore}
        store = kind["versioned" if self.door is Versioned else "plain"](engine)
        await store.initialize()
        yield store
        await engine.dispose()


class Ours(Peer):
    """Our store."""

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Any, None]:
        store = HoldfastVersionedTaskStore(str(self.path))
        yield store
        await store.close()


async def measured(peer: Peer, turns: int) -> Measured:
    """A task that grows by two messages a turn, every turn saved."""
    found = Measured(peer.name)
    async with peer.opened() as store:
        await _grow(peer.door(store), turns, found)
        reader = peer.door(store)
        for _ in range(LOADS):
            begun = time.process_time()
            assert len((await reader.load()).history) == 2 * turns
            found.loads.append(time.process_time() - begun)
    files = peer.path.parent.glob(f"{peer.path.name}*")
    found.size = sum(file.stat().st_size for file in files)
    async with peer.opened() as store:
        kept = await _updated(peer.door(store), peer.door(store))
        found.lost = UPDATES - kept
    return found


async def _grow(writer: Any, turns: int, found: Measured) -> None:
    task = Task(id="task", context_id="context")
    for n in range(turns):
        for role in (Role.ROLE_USER, Role.ROLE_AGENT):
            parts = [new_text_part(f"{n} {TEXT}")]
            task.history.add(message_id=f"{n} {role}", role=role, parts=parts)
        task.status.state = TaskState.TASK_STATE_WORKING
        with found.turn():
            await writer.save(task)


async def _updated(*writers: Any) -> int:
    """How many of the updates of two writers are there in the end."""

    async def update(writer: Any) -> None:
        for _ in range(UPDATES // len(writers)):
            while True:
                task = await writer.load()
                task.metadata.update({"n": task.metadata.fields["n"].number_value + 1})
                try:
                    await writer.save(task)
                except ConcurrentTaskModificationError:
                    continue
                break

    await asyncio.gather(*map(update, writers))
    return int((await writers[0].load()).metadata.fields["n"].number_value)


async def _all(folder: Path, turns: int) -> tuple[Measured, list[Measured]]:
    ours = await measured(Ours("ours", folder / "ours.db", Versioned), turns)
    peers = [
        Peer("VersionedDatabaseTaskStore", folder / "versioned.db", Versioned),
        Peer("DatabaseTaskStore", folder / "plain.db", Unversioned),
    ]
    return ours, [await measured(peer, turns) for peer in peers]


def measure(folder: str, turns: int) -> tuple[Measured, list[Measured]]:
    """What a task of so many turns takes in each store."""
    return asyncio.run(_all(Path(folder), turns))


if __name__ == "__main__":
    main(measure)
