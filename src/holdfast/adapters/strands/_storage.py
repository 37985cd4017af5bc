"""Bytes by key: each key in a thread, immutable snapshots of an agent in one."""

from __future__ import annotations

import builtins
from contextlib import suppress
from typing import Any, Unpack

from strands.storage import Storage

# Strands detects a storage that already has a prefix by this class.
from strands.storage.storage import (
    _NamespacedStorage,  # pyright: ignore[reportPrivateUsage]
)
from strands.types.exceptions import StorageError

from holdfast import AsyncThread, Checkpoint, Thread
from holdfast.adapters.strands._documents import bytes_of, says_the_same, state_of
from holdfast.adapters.strands._failures import of_storage
from holdfast.adapters.strands._names import KeyPlace, history_names, key_of, prefixes
from holdfast.errors import Conflict, HoldfastError, NotFound
from holdfast.operations import OpenOptions
from holdfast.operations.stores import BlockingStore, StoreOrAddress, awaited, settled

# Every save of an agent writes such a key, and every new agent reads it first.
LATEST = "snapshots/snapshot_latest.json"


class HoldfastStorage(Storage):
    """A storage for agents, session managers, stashes and memories of Strands.

    ``store`` is a `Store`, an `AsyncStore` over a file, or an address, which is opened
    with the options of `holdfast.open`. Every write is a checkpoint of the key's
    thread, which stores what changed: versions of a snapshot share their messages.

    The storage remembers which snapshot of an agent it has read or written last. If
    another storage has written a newer one since, a write is refused with a
    `StorageError` until the snapshot is read again. So give each agent a storage of its
    own; they can share a store. All other keys are overwritten.
    """

    def __init__(self, store: StoreOrAddress, **options: Unpack[OpenOptions]) -> None:
        self._used = BlockingStore(store, "Strands", **options)
        self._store = awaited(self._used.store)
        self._seen: dict[str, Checkpoint | None] = {}

    def close(self) -> None:
        """Close the store if it was opened here."""
        self._used.close()

    def thread(self, key: str) -> Thread:
        """The thread with the versions of a key: for fork, rewind, diff."""
        return self._used.store.thread(_place(key).thread)

    # --- the methods of a storage -----------------------------------------------------

    async def write(self, key: str, data: bytes) -> None:
        """Save the bytes of a key as a new checkpoint."""
        with of_storage(key):
            await settled(self._write(key, _place(key), state_of(bytes(data))))

    async def read(self, key: str) -> bytes | None:
        """The bytes that were written last, ``None`` if there are none."""
        with of_storage(key):
            place = _place(key)
            thread = self._thread(place)
            found = await _find(thread, place)
            if _is_latest(key):
                self._seen[key] = found
            return None if found is None else bytes_of(await thread.load(found))

    async def delete(self, key: str) -> None:
        """Delete the key with all its versions, if it is there."""
        with of_storage(key):
            await settled(self._delete(key, _place(key)))

    async def list(self, query: str = "") -> builtins.list[str]:
        """The keys that begin with a prefix, sorted."""
        with of_storage(query):
            storage, history = prefixes(query)
            threads = await self._store.threads(prefix=storage, limit=None)
            folders = await self._store.threads(prefix=history, limit=None)
            names = {*(folder.id for folder in folders), *history_names(query)}
            labelled = [key for name in names for key in await self._labelled(name)]
            keys = [*(key_of(thread.id) for thread in threads), *labelled]
            return sorted(key for key in keys if key.startswith(query))

    def namespace(self, prefix: str) -> Storage:
        """A view of the keys under a prefix, as in the storages of Strands."""
        return _NamespacedStorage(self, prefix)

    # --- within -----------------------------------------------------------------------

    def _thread(self, place: KeyPlace) -> AsyncThread:
        return self._store.thread(place.thread, kind=place.kind)

    async def _write(self, key: str, place: KeyPlace, state: dict[str, Any]) -> None:
        thread = self._thread(place)
        if key in self._seen:
            saved = await _save_after(thread, self._seen[key], state)
        else:
            saved = await _overwrite(thread, state, place.label)
        if _is_latest(key):
            self._seen[key] = saved

    async def _delete(self, key: str, place: KeyPlace) -> None:
        thread = self._thread(place)
        if place.label is None:
            await thread.delete()
            self._seen.pop(key, None)
            return
        while (found := await _find(thread, place)) is not None:
            await _remove(thread, found)

    async def _labelled(self, name: str) -> builtins.list[str]:
        """The keys of the immutable snapshots in a thread."""
        thread = self._store.thread(name)
        if await thread.head is None:
            return []
        labels = {c.label for c in await thread.history(None, all=True) if c.label}
        keys = [key_of(name, label) for label in labels]
        return [key for key in keys if KeyPlace.of(key).label]  # not a caller's label


def _place(key: str) -> KeyPlace:
    if not key:
        raise StorageError("a key must not be empty")
    return KeyPlace.of(key)


def _is_latest(key: str) -> bool:
    return key.endswith(LATEST)


async def _save_after(
    thread: AsyncThread, seen: Checkpoint | None, state: dict[str, Any]
) -> Checkpoint:
    """Save after the checkpoint seen, unless only the time differs and another saved.

    An agent saves once more after its last message. If that save were refused, Strands
    would treat the turn as not stored, and repeat it.
    """
    try:
        return await thread.save(state, expect=seen)
    except Conflict as conflict:
        if seen is None or conflict.code != "head_moved":
            raise
        try:
            before = await thread.load(seen)
        except HoldfastError:
            raise conflict from None
        if not says_the_same(before, state):
            raise
        return seen


async def _overwrite(
    thread: AsyncThread, state: dict[str, Any], label: str | None
) -> Checkpoint:
    try:
        return await thread.save(state, label=label)
    except Conflict as conflict:
        if conflict.code != "thread_deleted":
            raise
        return await thread.save(state, label=label, expect=None)


async def _remove(thread: AsyncThread, checkpoint: Checkpoint) -> None:
    """Delete a checkpoint; change nothing if another writer deleted it meanwhile."""
    try:
        await thread.delete(checkpoint)
    except NotFound:
        return  # the head cannot move to its parent any more; look again
    except Conflict as conflict:
        if conflict.code != "last_checkpoint":
            raise
        with suppress(Conflict):
            await thread.delete(expect=checkpoint)


async def _find(thread: AsyncThread, place: KeyPlace) -> Checkpoint | None:
    if place.label is None or await thread.head is None:
        return await thread.head
    return await thread.find(label=place.label)
