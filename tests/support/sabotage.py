"""Stores that break their promises, to see that the selftest notices."""

from __future__ import annotations

import contextlib
import hmac
import os
from functools import partial
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

import holdfast
from holdfast import Page, Store
from holdfast.backends import UNSET, Entry, Layer, Stored, Write
from holdfast.errors import Conflict, HoldfastError
from holdfast.operations.effects import calls, ledger
from holdfast.operations.threads import removal
from holdfast.operations.values import codec
from holdfast.testing.trials import Target
from inner.directory import WORK, Files
from inner.keys import CODE, MoveProofs, ciphers
from inner.postgres import BlockingConnections
from inner.sqlite import Database, SqliteBackend
from inner.values import file_listing
from inner.workspace import descriptors, seal
from support.stores import backend_of

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
        outcomes = Layer.commit_each(self, batches)
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


class NotExpecting(Layer):
    """Saves whatever the head is."""

    async def commit(self, writes):
        return await super().commit(_anyhow(writes))

    def commit_each(self, batches):
        return super().commit_each([_anyhow(writes) for writes in batches])


def _anyhow(writes):
    return [replace(write, expect=UNSET) for write in writes]


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


class Acknowledging(Dropping):
    """Acknowledges a save that failed."""

    async def commit(self, writes):
        try:
            receipts = await self.backend.commit(writes)
        except HoldfastError:
            return [self._forged() for _ in writes]
        self.last = receipts[-1]
        return receipts

    def commit_each(self, batches):
        outcomes = Layer.commit_each(self, batches)
        self.last = next((o[-1] for o in outcomes if isinstance(o, list)), self.last)
        return [
            [self._forged()] if isinstance(outcome, HoldfastError) else outcome
            for outcome in outcomes
        ]


class Topped(Target):
    """Stores of any kind, under a layer that stands above all others."""

    layer: type[Layer]

    def open(self, name, **options):
        return self._topped(super().open(name, **options))

    def open_at(self, url, **options):
        return self._topped(super().open_at(url, **options))

    def open_on(self, disk, path, **options):
        return self._topped(super().open_on(disk, path, **options))

    def _topped(self, store):
        context = store.runner.context
        return Store(replace(context, backend=self.over(context.backend)))

    def over(self, backend):
        return self.layer(backend)


def topped(layer):
    return type(layer.__name__, (Topped,), {"layer": layer})


class EntryDropping(Layer):
    """Acknowledges every fifth write to the journal without its last entry."""

    def __init__(self, backend):
        super().__init__(backend)
        self.count = 0

    async def commit(self, writes):
        kept = [self._without_last(write) for write in writes]
        receipts = await super().commit(kept)
        return [
            _forged_entries(*each) for each in zip(writes, kept, receipts, strict=True)
        ]

    def commit_each(self, batches):
        kept = [[self._without_last(write) for write in writes] for writes in batches]
        outcomes = super().commit_each(kept)
        return [
            [_forged_entries(*each) for each in zip(*found, strict=True)]
            if isinstance(found[-1], list)
            else found[-1]
            for found in zip(batches, kept, outcomes, strict=True)
        ]

    def _without_last(self, write):
        self.count += bool(write.entries)
        if not write.entries or self.count % DROPPED:
            return write
        return replace(write, entries=write.entries[:-1])


def _forged_entries(write, kept, receipt):
    if len(write.entries) == len(kept.entries):
        return receipt
    return replace(receipt, entries=(*receipt.entries, write.entries[-1]))


class GrantingThreads(Layer):
    """Lets every thread of a family use a grant."""

    async def commit(self, writes):
        return await super().commit(_of_threads(writes))

    def commit_each(self, batches):
        return super().commit_each([_of_threads(writes) for writes in batches])


def _of_threads(writes):
    return [replace(write, family_wide=False) for write in writes]


class Patched(Target):
    """Stores of a program that was changed as a whole."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.change()

    @staticmethod
    def change():
        raise NotImplementedError


def patched(change):
    return type(change.__name__, (Patched,), {"change": staticmethod(change)})


async def _nothing(*_):
    return None


async def _nothing_known(*_):
    return calls.CallStatus()


def forget_effects():
    """Find no effect that was left behind."""
    ledger.find_earlier = _nothing


def call_again():
    """Take every call for one that was never made."""
    calls.find_status = _nothing_known


def call_together():
    """Believe every worker that it was the first to begin a call."""
    record = calls._record

    async def believing(context, thread, start, values):
        await record(context, thread, start, values)
        return values

    calls._record = believing


def hand_nothing_on():
    """Forget the grants of a thread that is deleted."""

    async def handed_over(*_):
        return []

    removal.handed_over = handed_over


def use_in_forks():
    """Go on in a forked child with what its parent has open."""
    for backend in (SqliteBackend, BlockingConnections):
        backend.after_fork_in_child = lambda *_: None
    Database.before_fork = Database.after_fork_in_parent = lambda *_: None


class NotSynced(Target):
    """Stores that do not wait for the disk."""

    def open_on(self, disk, path, **options):
        disk.files.sync = lambda _: None
        return super().open_on(disk, path, **{**options, "durability": "normal"})


def keep_no_names():
    """Never ask the disk to keep the names in a folder."""
    Files.sync_folder = lambda *_: None


class IntentsNotSynced(Target):
    """Folders whose files change before the disk keeps what is about to be done."""

    def open_on(self, disk, path, **options):
        sync = disk.files.sync_folder
        disk.files.sync_folder = lambda p: None if p.endswith(WORK) else sync(p)
        return super().open_on(disk, path, **options)


class Logged(Topped):
    """Stores beside which everything that is saved is written to a log."""

    def over(self, backend):
        return Logging(backend, self.path("log"))


class Logging(Layer):
    """Writes everything that is saved to a file."""

    def __init__(self, backend, path):
        super().__init__(backend)
        self.path = path

    def _log(self, what):
        with open(self.path, "a") as file:
            file.write(repr(what))

    async def commit(self, writes):
        self._log(writes)
        return await super().commit(writes)

    def commit_each(self, batches):
        self._log(batches)
        return super().commit_each(batches)


class Unencrypted(Target):
    """Stores that take a key and do not use it."""

    def open(self, name, **options):
        options.pop("key", None)
        return super().open(name, **options)


def repeat_nonces():
    """Encrypt everything with the first nonce of a process."""
    ciphers._Session.take = lambda *_: 1
    ciphers.os = SimpleNamespace(urandom=bytes, getpid=os.getpid)


class BelievingStore(Store):
    """Finds nothing wrong with anything."""

    def verify(self, **options):
        return replace(super().verify(**options), problems=())

    def threads(self, **options):
        return Page(()) if self.runner.context.keys else super().threads(**options)


class Believing(Target):
    def open(self, name, **options):
        return BelievingStore(super().open(name, **options).runner.context)

    def open_at(self, url, **options):
        return BelievingStore(super().open_at(url, **options).runner.context)


class ForgetfulStore(Store):
    """Leaves a scope out of what it rescues."""

    def salvage(self, to):
        report = super().salvage(to)
        with holdfast.open(to) as saved:
            saved.delete(prefix="acme\x1f")
        return report


class Forgetful(Target):
    def open_at(self, url, **options):
        return ForgetfulStore(super().open_at(url, **options).runner.context)


class Endless(Target):
    """Stores that never restart their write-ahead log."""

    def open(self, name, **options):
        store = super().open(name, **options)
        if not options.get("read_only"):
            database = backend_of(store).database
            database.hooks.open = partial(_with_endless_log, database.hooks.open)
            database.hooks._log_size = SimpleNamespace(look=id, tell=int)
            database.replace_writer(database.hooks.open(database))
        return store


def _with_endless_log(opening, database):
    db = opening(database)
    db.execute("pragma wal_autocheckpoint = 0")
    return db


def execute():
    """Run code when values are loaded."""
    codec._LOADS[str]["$hf.call"] = lambda _: exec("pass")


def believe_moves():
    """Believe what a file says about the moves of a thread."""
    MoveProofs._code = lambda *_: bytes(CODE)
    MoveProofs.gaps = lambda *_: []


class NotScrubbing(Layer):
    """Removes rows that are erased, and leaves their bytes where they were."""

    async def scrub(self):
        pass


class Unlocked(Target):
    """An MCP server that lets everybody in."""

    def url(self, name):
        folder = os.path.join(self.folder, "customized")
        os.mkdir(folder)
        with open(os.path.join(folder, "sitecustomize.py"), "w") as file:
            file.write("from holdfast import _http\n")
            file.write("_http.RequestCheck._refusal = lambda *_: None\n")
        paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
        return super().url(name)


class Following(Target):
    """Restores that follow a link in the place of a folder."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        descriptors.FOLDER &= ~os.O_NOFOLLOW


class Unchecked(Target):
    """Stores that do not check the paths in lists of files."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        file_listing.wrong_path = lambda _: None


class Credulous(Target):
    """Workspaces that finish whatever restore is under way in their folder."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        seal.hmac = SimpleNamespace(digest=hmac.digest, compare_digest=lambda *_: True)


SABOTAGES = {
    "sound": Target,
    "dropping": topped(Dropping),
    "in-two": topped(InTwo),
    "not-expecting": topped(NotExpecting),
    "repeating-nonces": patched(repeat_nonces),
    "altering": topped(Altering),
    "oldest-first": topped(OldestFirst),
    "not-synced": NotSynced,
    "names-not-synced": patched(keep_no_names),
    "intents-not-synced": IntentsNotSynced,
    "logging": Logged,
    "unencrypted": Unencrypted,
    "believing": Believing,
    "endless": Endless,
    "executing": patched(execute),
    "forgetful": Forgetful,
    "following": Following,
    "unchecked": Unchecked,
    "credulous": Credulous,
    "unlocked": Unlocked,
    "not-scrubbing": topped(NotScrubbing),
    "unproven": patched(believe_moves),
    "acknowledging": topped(Acknowledging),
    "entry-dropping": topped(EntryDropping),
    "granting-threads": topped(GrantingThreads),
    "handing-nothing-on": patched(hand_nothing_on),
    "forgetting-effects": patched(forget_effects),
    "calling-again": patched(call_again),
    "calling-together": patched(call_together),
    "used-in-forks": patched(use_in_forks),
}
