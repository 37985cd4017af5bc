"""Faults on purpose, for tests: a disk that fills up, fails, tears writes and forgets.

A `FaultyDisk` is a SQLite VFS between the store and its files. It counts every read,
write, sync, truncate and delete of the database, its write-ahead log and its rollback
journal, and a `Fault` says what happens at one of them. `Platter` remembers what has
been synced, and so what of the files a power cut would leave behind.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NoReturn, Unpack

import apsw

from holdfast._opening import Options, context_over
from holdfast._store import Store
from holdfast.backends.sqlite import SqliteBackend
from holdfast.backends.sqlite._connect import page_checksums

__all__ = [
    "CHANGES",
    "Call",
    "Fault",
    "FaultyDisk",
    "Platter",
    "disk_full",
    "io_error",
    "kill",
]

Kind = Literal["read", "write", "sync", "truncate", "delete"]

CHANGES: frozenset[Kind] = frozenset({"write", "sync", "truncate", "delete"})

_JOURNALS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
_COUNTED = _JOURNALS | apsw.SQLITE_OPEN_MAIN_DB
# The page checksums below this VFS put one into every write of 512 bytes or more:
# half a page has none, so it goes down in smaller pieces.
_PIECE = 256


class Call(NamedTuple):
    """Something SQLite is about to do to a file."""

    kind: Kind
    path: str
    offset: int = 0
    data: bytes = b""


Effect = Callable[[Call], None]


def kill(_: Call) -> NoReturn:
    """End the process as ``kill -9`` does: nothing is closed, flushed or unlocked."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("a killed process went on")


def disk_full(call: Call) -> None:
    """There is no space left: writes fail, everything else works."""
    if call.kind == "write":
        raise apsw.FullError("no space left on device (injected)")


_IO_ERRORS: dict[Kind, int] = {
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "delete": apsw.SQLITE_IOERR_DELETE,
}


def io_error(call: Call) -> NoReturn:
    """The device fails."""
    raise apsw.exception_for(_IO_ERRORS[call.kind])


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens at the ``at``-th call, counted from 1, of the given kinds.

    ``torn`` lets half of a write through first. ``lasting`` strikes at every later call
    too. An effect that returns lets the call go on as if nothing had happened.
    """

    at: int
    effect: Effect
    kinds: frozenset[Kind] = CHANGES
    torn: bool = False
    lasting: bool = False

    def strikes(self, number: int) -> bool:
        """Whether the call with this number meets the fault."""
        return number == self.at or (self.lasting and number > self.at)


class FaultyDisk:
    """A disk whose calls are counted and fail on demand; ``name`` is that of its VFS.

    With ``syncing=False`` syncs are counted and not made: enough, and faster, where
    only processes are killed. A `Platter` is told of everything that is done.
    """

    def __init__(
        self, name: str, *, syncing: bool = True, platter: Platter | None = None
    ) -> None:
        self.name = name
        self.syncing = syncing
        self.platter = platter
        self.calls = 0
        self._fault: Fault | None = None
        self._vfs = _Vfs(self, page_checksums() or "")

    def arm(self, fault: Fault | None) -> None:
        """Let this happen from now on, and count from 1 again."""
        self.calls = 0
        self._fault = fault

    def heal(self) -> int:
        """Let nothing happen any more; gives back how many calls there were."""
        calls = self.calls
        self.arm(None)
        return calls

    def remove(self) -> None:
        """Take the disk away; stores on it must be closed."""
        self._vfs.unregister()

    def open(self, path: str, **options: Unpack[Options]) -> Store:
        """A store on this disk; the options are those of `holdfast.open`."""
        backend = SqliteBackend(
            os.path.abspath(path),
            read_only=options.get("read_only", False),
            durability=options.get("durability", "full"),
            busy_timeout=options.get("busy_timeout", 5.0),
            compress=options.get("compress", False),
            vfs=self.name,
        )
        return Store(context_over(backend, options))

    def meet(self, call: Call, tear: Callable[[], None]) -> None:
        """Count a call and let it have what is meant for it."""
        fault = self._fault
        if call.kind not in (fault.kinds if fault else CHANGES):
            return
        self.calls += 1
        if fault is not None and fault.strikes(self.calls):
            if fault.torn:
                tear()
            fault.effect(call)


def _nothing() -> None:
    return None


class _Vfs(apsw.VFS):
    def __init__(self, disk: FaultyDisk, base: str) -> None:
        super().__init__(disk.name, base)
        self.disk = disk
        self.base = base

    def xOpen(  # noqa: N802 - SQLite's name
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        if name is None or not flags[0] & _COUNTED:
            return apsw.VFSFile(self.base, name, flags)
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.disk.meet(Call("delete", filename), _nothing)
        super().xDelete(filename, syncdir)
        if self.disk.platter is not None:
            self.disk.platter.deleted(filename, durably=syncdir)


class _File(apsw.VFSFile):
    def __init__(
        self, vfs: _Vfs, name: str | apsw.URIFilename, flags: list[int]
    ) -> None:
        super().__init__(vfs.base, name, flags)
        self.disk = vfs.disk
        self.path = name if isinstance(name, str) else name.filename()
        self.is_journal = bool(flags[0] & _JOURNALS)
        if self.disk.platter is not None and flags[0] & apsw.SQLITE_OPEN_CREATE:
            self.disk.platter.opened(self.path, is_journal=self.is_journal)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        self.disk.meet(Call("read", self.path, offset), _nothing)
        return super().xRead(amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        self.disk.meet(
            Call("write", self.path, offset, data), lambda: self._tear(data, offset)
        )
        super().xWrite(data, offset)
        if self.disk.platter is not None:
            # Read back, because a page gets its checksum further down.
            written = data if self.is_journal else super().xRead(len(data), offset)
            self.disk.platter.written(self.path, offset, written)

    def _tear(self, data: bytes, offset: int) -> None:
        for start in range(0, len(data) // 2, _PIECE):
            end = min(start + _PIECE, len(data) // 2)
            super().xWrite(data[start:end], offset + start)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self.disk.meet(Call("sync", self.path), _nothing)
        if self.disk.syncing:
            super().xSync(flags)
        if self.disk.platter is not None:
            self.disk.platter.synced(self.path)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self.disk.meet(Call("truncate", self.path, newsize), _nothing)
        super().xTruncate(newsize)
        if self.disk.platter is not None:
            self.disk.platter.truncated(self.path, newsize)


# --- power cuts -----------------------------------------------------------------------


class _Change(NamedTuple):
    """A write, or with ``data`` ``None`` a truncation to ``offset`` bytes."""

    offset: int
    data: bytes | None


@dataclass(slots=True)
class _Content:
    """A file, whatever its name: what is on the platter and what is on its way."""

    durable: bytearray = field(default_factory=bytearray)
    pending: list[_Change] = field(default_factory=list[_Change])
    syncs_folder: bool = False


class Platter:
    """What would survive if the power failed now.

    The model, at least as harsh as the file systems SQLite runs on:

    - What was written to a file before it was last synced is there.
    - Of what was written since, each sector is there, or not, or only its beginning,
      each by chance and in no order; so is each truncation. Bytes outside of the
      written range are never harmed (SQLite's "powersafe overwrite").
    - Names are apart from content. A file that was made or deleted is, or is not, there
      after the cut until its folder has been synced. SQLite syncs the folder with the
      first sync after it opened a journal or log, and when it deletes with that wish;
      it counts for all names in the folder.

    ``-shm`` files are memory and do not survive.
    """

    def __init__(self, folder: str, *, sector: int = 4096) -> None:
        self._folder = folder
        self._sector = sector
        self._names: dict[str, _Content] = {}
        for name in os.listdir(folder):
            if not name.endswith(("-shm", "-lock")):
                with open(os.path.join(folder, name), "rb") as file:
                    self._names[name] = _Content(bytearray(file.read()))
        self._durable_names = dict(self._names)

    # --- what is done to the files ----------------------------------------------------

    def opened(self, path: str, *, is_journal: bool) -> None:
        """A file was opened for writing, and made if it was not there."""
        content = self._names.setdefault(self._name(path), _Content())
        content.syncs_folder = content.syncs_folder or is_journal

    def written(self, path: str, offset: int, data: bytes) -> None:
        """Bytes are in the cache of the operating system."""
        self._names[self._name(path)].pending.append(_Change(offset, data))

    def truncated(self, path: str, size: int) -> None:
        """A file has a new size, as far as running processes can see."""
        self._names[self._name(path)].pending.append(_Change(size, None))

    def synced(self, path: str) -> None:
        """All of a file is on the platter."""
        content = self._names[self._name(path)]
        for change in content.pending:
            _carry_out(content.durable, change)
        content.pending.clear()
        if content.syncs_folder:
            self._durable_names = dict(self._names)
            content.syncs_folder = False

    def deleted(self, path: str, *, durably: bool) -> None:
        """A name is gone."""
        self._names.pop(self._name(path), None)
        if durably:
            self._durable_names = dict(self._names)

    def _name(self, path: str) -> str:
        return os.path.basename(path)

    # --- the cut ----------------------------------------------------------------------

    def survivors(self, chance: random.Random) -> dict[str, bytes]:
        """The files of one possible power cut at this moment, by name."""
        share = chance.choice((0.0, 0.2, 0.5, 0.8, 1.0))
        found: dict[str, bytes] = {}
        for name in sorted(self._names.keys() | self._durable_names.keys()):
            names = chance.choice((self._names, self._durable_names))
            if name in names:
                found[name] = self._survived(names[name], chance, share)
        return found

    def cut(self, folder: str, chance: random.Random) -> None:
        """Write what survives into a new folder."""
        os.makedirs(folder)
        for name, data in self.survivors(chance).items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)

    def _survived(
        self, content: _Content, chance: random.Random, share: float
    ) -> bytes:
        data = bytearray(content.durable)
        for change in content.pending:
            for piece in _sectors(change, self._sector):
                if chance.random() < share:
                    _carry_out(data, piece)
                elif piece.data and chance.random() < share / 2:
                    torn = piece.data[: chance.randrange(len(piece.data))]
                    _carry_out(data, _Change(piece.offset, torn))
        return bytes(data)


def _sectors(change: _Change, size: int) -> Iterator[_Change]:
    offset, data = change
    if data is None:
        yield change
        return
    start = 0
    while start < len(data):
        end = start + size - (offset + start) % size
        yield _Change(offset + start, data[start:end])
        start = end


def _carry_out(content: bytearray, change: _Change) -> None:
    offset, data = change
    missing = offset - len(content)
    if missing > 0:
        content.extend(bytes(missing))
    if data is None:
        del content[offset:]
    else:
        content[offset : offset + len(data)] = data
