"""The snapshots of threads that user interfaces show again."""

from __future__ import annotations

import dataclasses
from typing import Any, Unpack

from agent_framework_ag_ui import AGUIThreadSnapshot

from holdfast import AsyncThread
from holdfast.errors import Conflict, NotFound
from holdfast.operations import OpenOptions
from holdfast.operations.names import escaped
from holdfast.operations.stores import StoreOrAddress, UsedStore, settled

KIND = "ag-ui"
_FIELDS = tuple(field.name for field in dataclasses.fields(AGUIThreadSnapshot))


class HoldfastThreadSnapshotStore:
    """An `AGUIThreadSnapshotStore` for `add_agent_framework_fastapi_endpoint`.

    ``store`` is an address, which is opened with the options of `holdfast.open`, or a
    `Store` or `AsyncStore`. Of two snapshots that are saved at once the second is the
    latest, and the first stays in the history of the thread.
    """

    def __init__(self, store: StoreOrAddress, **options: Unpack[OpenOptions]) -> None:
        self._used = UsedStore(store, **options)
        self._store = self._used.awaited

    async def close(self) -> None:
        """Close the store if it was opened here."""
        await self._used.close()

    async def save(
        self, *, scope: str, thread_id: str, snapshot: AGUIThreadSnapshot
    ) -> None:
        """Save a snapshot as the latest of its thread, durable when this returns."""
        values = {name: getattr(snapshot, name) for name in _FIELDS}
        kept = {name: value for name, value in values.items() if value is not None}
        await settled(_saved(self._thread(scope, thread_id), kept))

    async def get(self, *, scope: str, thread_id: str) -> AGUIThreadSnapshot | None:
        """The latest snapshot of a thread, ``None`` if there is none."""
        try:
            values: dict[str, Any] = await self._thread(scope, thread_id).load()
        except NotFound:
            return None
        return AGUIThreadSnapshot(**{n: values[n] for n in _FIELDS if n in values})

    async def delete(self, *, scope: str, thread_id: str) -> bool:
        """Delete a thread with all its snapshots; ``False`` if there is none."""
        return await settled(self._thread(scope, thread_id).delete()) > 0

    async def clear(self, *, scope: str | None = None) -> None:
        """Delete the threads of a scope, or of all scopes."""
        prefix = f"{KIND}:" if scope is None else _prefix(scope)
        await settled(self._store.delete(kind=KIND, prefix=prefix))

    def _thread(self, scope: str, thread_id: str) -> AsyncThread:
        name = f"{_prefix(scope)}{escaped(_checked(thread_id, 'thread_id'))}"
        return self._store.thread(name, kind=KIND, owner=escaped(scope))


async def _saved(thread: AsyncThread, values: dict[str, Any]) -> None:
    try:
        await thread.save(values, if_changed=True)
    except Conflict as conflict:
        if conflict.code != "thread_deleted":
            raise
        await thread.save(values, expect=None)


def _prefix(scope: str) -> str:
    return f"{KIND}:{escaped(_checked(scope, 'scope'))}/"


def _checked(given: object, name: str) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{name} must be a string.")
    if not given:
        raise ValueError(f"{name} must be a non-empty string.")
    return given
