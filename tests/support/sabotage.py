"""Stores that break their promises, to see that the selftest notices."""

from __future__ import annotations

import contextlib
from typing import Any

from msgspec.structs import replace

from holdfast._api.options import context_over
from holdfast._api.store import Store
from holdfast._port import Stored, Write
from holdfast._values.records import UNSET, Entry, Page
from holdfast.backends import Layer
from holdfast.backends.sqlite import SqliteBackend
from holdfast.errors import Conflict
from holdfast.selftest import Target

DROPPED = 5


class Dropping(Layer):
    """Acknowledges every fifth save without making it."""

    def __init__(self, backend):
        super().__init__(backend)
        self.count = 0
        self.last: Any = None

    def _drops(self):
        self.count += 1
        return self.count % DROPPED == 0 and self.last is not None

    async def commit(self, writes):
        if self._drops():
            return [self._forged() for _ in writes]
        receipts = await super().commit(writes)
        self.last = receipts[-1]
        return receipts

    def commit_each(self, batches):
        if self._drops():
            return [[self._forged() for _ in writes] for writes in batches]
        outcomes = super().commit_each(batches)
        self.last = next((o[-1] for o in outcomes if isinstance(o, list)), self.last)
        return outcomes

    def _forged(self):
        return replace(self.last, seq=self.last.seq + 1, entries=())


class InTwo(Layer):
    """Makes a save in two transactions, of which the first leaves a mark."""

    async def commit(self, writes):
        for write in writes:
            with contextlib.suppress(Conflict):
                await super().commit([_mark(write)])
        return await super().commit(writes)

    def commit_each(self, batches):
        super().commit_each([[_mark(write)] for batch in batches for write in batch])
        return super().commit_each(batches)


def _mark(write):
    entry = Entry(write.thread, "", "mark", b"1")
    return Write(thread=write.thread, at=write.at, expect=UNSET, entries=(entry,))


class Altering(Layer):
    """Gives other bytes than those that were saved."""

    async def segments(self, family, runs):
        return _altered(await super().segments(family, runs))

    async def read(self, keys):
        return [
            replace(found, segments=_altered(found.segments))
            if isinstance(found, Stored) and found.segments
            else found
            for found in await super().read(keys)
        ]


def _altered(segments):
    return [replace(s, data=s.data.replace(b"x", b"y")) for s in segments]


class OldestFirst(Layer):
    """Says of each list that its end is its beginning."""

    async def scan(self, query):
        page = await super().scan(query)
        return Page(page.items[::-1], page.cursor)


class Layered(Target):
    """Stores in files, under a layer."""

    layer: type[Layer]

    def open(self, name, **options):
        return self._under(SqliteBackend(self.path(name), **_own(options)), options)

    def open_at(self, url, **options):
        return self._under(SqliteBackend(url, **_own(options)), options)

    def open_on(self, disk, path, **options):
        return self._under(disk._backend(path, options), options)

    def _under(self, backend, options):
        return Store(context_over(self.layer(backend), options))


def _own(options):
    names = ("durability", "busy_timeout", "read_only")
    return {name: options[name] for name in names if name in options}


def layered(layer):
    return type(layer.__name__, (Layered,), {"layer": layer})


class NotSynced(Target):
    """Stores that do not wait for the disk."""

    def open_on(self, disk, path, **options):
        return super().open_on(disk, path, **{**options, "durability": "normal"})


SABOTAGES = {
    "sound": Target,
    "dropping": layered(Dropping),
    "in-two": layered(InTwo),
    "altering": layered(Altering),
    "oldest-first": layered(OldestFirst),
    "not-synced": NotSynced,
}
