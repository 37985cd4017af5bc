"""The heads this store saved or loaded last, with their bytes, within a budget.

An operation takes an entry out while it uses it, so that it may change the bytes in
place; a concurrent operation on the same thread reads from the backend instead.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Self

import msgspec

from holdfast._values import file_listing
from holdfast._values.manifest import Manifest, decode_manifest
from holdfast._values.records import Checkpoint
from holdfast._values.rope import Body

ENTRY_COST = 2048
FILE_COST = 544


class OpenedCheckpoint(msgspec.Struct):
    """A checkpoint with its manifest and the values' bytes that have been read yet.

    ``listing`` is the list of its files, if that has been read.
    """

    head: Checkpoint
    manifest: Manifest
    bodies: dict[str, Body] = {}
    listing: file_listing.Listing | None = None

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> Self:
        """A checkpoint of which nothing but its manifest is in memory."""
        return cls(checkpoint, decode_manifest(checkpoint))

    @property
    def cost(self) -> int:
        """About how many bytes of memory it takes."""
        cost = ENTRY_COST
        for body in self.bodies.values():
            cost += len(body.text)
        if self.listing is not None:
            cost += len(self.listing.files) * FILE_COST
        return cost


class Cache:
    """Entries by thread; the least recently used are dropped beyond the budget."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._spent = 0
        self._entries: OrderedDict[str, tuple[OpenedCheckpoint, int]] = OrderedDict()

    def take(self, thread: str) -> OpenedCheckpoint | None:
        """Remove and return the entry of a thread."""
        entry = self._entries.pop(thread, None)
        if entry is None:
            return None
        known, cost = entry
        self._spent -= cost
        return known

    def give(self, thread: str, known: OpenedCheckpoint) -> None:
        """Keep an entry for the next operation on the thread."""
        if thread in self._entries:
            self.take(thread)
        cost = known.cost
        if cost > self._budget:
            return
        self._entries[thread] = known, cost
        self._spent += cost
        while self._spent > self._budget:
            try:
                _, (_, cost) = self._entries.popitem(last=False)
            except KeyError:
                return
            self._spent -= cost

    def listing(self, thread: str) -> file_listing.Listing | None:
        """The list of files of a thread's entry, which stays where it is."""
        entry = self._entries.get(thread)
        return entry[0].listing if entry else None

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()
        self._spent = 0


class CachePart(Cache):
    """Entries of another cache, under keys that begin with a text of their own."""

    def __init__(self, cache: Cache, prefix: str) -> None:
        super().__init__(0)
        self._cache, self._prefix = cache, prefix

    def take(self, thread: str) -> OpenedCheckpoint | None:
        return self._cache.take(self._prefix + thread)

    def give(self, thread: str, known: OpenedCheckpoint) -> None:
        self._cache.give(self._prefix + thread, known)

    def listing(self, thread: str) -> file_listing.Listing | None:
        return self._cache.listing(self._prefix + thread)

    def clear(self) -> None:
        """Leave them to the other cache, whose budget they are in."""
