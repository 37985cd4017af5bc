"""A disk that fails on demand, for SQLite databases and for plain files."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, NoReturn, Unpack

import apsw

from holdfast._api.options import OpenOptions, context_over, make_ready
from holdfast._api.store import Store
from holdfast._port import Backend, run
from holdfast.backends.directory import Files, open_directory
from holdfast.backends.sqlite import SqliteBackend, page_checksums
from holdfast.testing.faults._power import Platter

Kind = Literal["read", "write", "sync", "truncate", "delete", "rename"]

CHANGES: frozenset[Kind] = frozenset({"write", "sync", "truncate", "delete", "rename"})


class Call(NamedTuple):
    """An operation on a file that is about to be done."""

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
    """There is no space left: writes fail, all other calls work."""
    if call.kind == "write":
        raise apsw.FullError("no space left on device (injected)")


_IO_ERRORS: dict[Kind, int] = {
    "read": apsw.SQLITE_IOERR_READ,
    "write": apsw.SQLITE_IOERR_WRITE,
    "sync": apsw.SQLITE_IOERR_FSYNC,
    "truncate": apsw.SQLITE_IOERR_TRUNCATE,
    "delete": apsw.SQLITE_IOERR_DELETE,
    "rename": apsw.SQLITE_IOERR_ACCESS,
}


def io_error(call: Call) -> NoReturn:
    """The device fails."""
    raise apsw.exception_for(_IO_ERRORS[call.kind])


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An effect at the ``at``-th call of the given kinds, counted from 1.

    With ``torn``, half of a write is done first. With ``lasting``, the fault also meets
    every later call. If the effect returns, the call is done as if there were no fault.
    """

    at: int
    effect: Effect
    kinds: frozenset[Kind] = CHANGES
    torn: bool = False
    lasting: bool = False

    def strikes(self, number: int) -> bool:
        """True if the call with this number meets the fault."""
        return number == self.at or (self.lasting and number > self.at)


FOLDER = "dir:"

_JOURNALS = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
_COUNTED = _JOURNALS | apsw.SQLITE_OPEN_MAIN_DB
# The page checksums below this VFS put one into every write of 512 bytes or more. Half
# a page has none, so it is written in smaller pieces.
_PIECE = 256


class FaultyDisk:
    """A disk whose calls are counted and fail on demand.

    ``name`` is that of its SQLite VFS, ``files`` are its operations on plain files.
    With ``syncing=False`` syncs are counted but not done: that is faster, and enough
    where only processes are killed. Every change is reported to the ``platter``.
    """

    def __init__(
        self, name: str, *, syncing: bool = True, platter: Platter | None = None
    ) -> None:
        self.name = name
        self.syncing = syncing
        self.platter = platter
        self.calls = 0
        self._fault: Fault | None = None
        self._vfs = _FaultyVfs(self, page_checksums() or "")
        self.files: Files = _FaultyFiles(self)

    def arm(self, fault: Fault | None) -> None:
        """Set the fault, and count calls from 1 again."""
        self.calls = 0
        self._fault = fault

    def heal(self) -> int:
        """Remove the fault; gives back how many calls there were."""
        calls = self.calls
        self.arm(None)
        return calls

    def remove(self) -> None:
        """Unregister the VFS; stores on the disk must be closed."""
        self._vfs.unregister()

    def open(self, path: str, **options: Unpack[OpenOptions]) -> Store:
        """A store on this disk; the options are those of `holdfast.open`.

        It is a file, or with ``dir:`` in front of its path a folder.
        """
        backend = self._backend(path, options)
        context = context_over(backend, options)
        if context.keys is not None:
            run(make_ready(context))
        return Store(context)

    def _backend(self, path: str, options: OpenOptions) -> Backend:
        if path.startswith(FOLDER):
            return open_directory(
                os.path.abspath(path.removeprefix(FOLDER)),
                read_only=options.get("read_only", False),
                busy_timeout=options.get("busy_timeout", 5.0),
                vfs=self.name,
                files=self.files,
            )
        return SqliteBackend(
            os.path.abspath(path),
            read_only=options.get("read_only", False),
            durability=options.get("durability", "full"),
            busy_timeout=options.get("busy_timeout", 5.0),
            compress=options.get("compress", False),
            vfs=self.name,
        )

    def meet(self, call: Call, tear: Callable[[], None]) -> None:
        """Count a call, and let it meet the fault that is set for it."""
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


class _FaultyVfs(apsw.VFS):
    def __init__(self, disk: FaultyDisk, base: str) -> None:
        super().__init__(disk.name, base)
        self.disk = disk
        self.base = base

    def xOpen(  # noqa: N802 - SQLite's name
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        if name is None or not flags[0] & _COUNTED:
            return apsw.VFSFile(self.base, name, flags)
        return _FaultyFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.disk.meet(Call("delete", filename), _nothing)
        super().xDelete(filename, syncdir)
        if self.disk.platter is not None:
            self.disk.platter.deleted(filename, durably=syncdir)


class _FaultyFile(apsw.VFSFile):
    def __init__(
        self, vfs: _FaultyVfs, name: str | apsw.URIFilename, flags: list[int]
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


# --- plain files ----------------------------------------------------------------------


class _FaultyFiles(Files):
    """The operations of a store in a folder on its files, on a faulty disk."""

    def __init__(self, disk: FaultyDisk) -> None:
        self._disk = disk

    def read(self, path: str, start: int = 0, size: int = -1) -> bytes:
        self._meet(Call("read", path, start))
        return super().read(path, start, size)

    def pieces(self, path: str, start: int = 0) -> Iterator[bytes]:
        self._meet(Call("read", path, start))
        return super().pieces(path, start)

    def write(self, path: str, offset: int, data: bytes) -> None:
        half = data[: len(data) // 2]
        call = Call("write", path, offset, data)
        self._meet(call, lambda: super(_FaultyFiles, self).write(path, offset, half))
        super().write(path, offset, data)
        if self._disk.platter is not None:
            self._disk.platter.opened(path, is_journal=False)
            self._disk.platter.written(path, offset, data)

    def flush(self, descriptor: int, path: str) -> None:
        # Report it here: the platter models the syncs that reach the disk.
        self._meet(Call("sync", path))
        if self._disk.syncing:
            super().flush(descriptor, path)
        if self._disk.platter is None:
            return
        if os.path.isdir(path):
            self._disk.platter.synced_folder(path)
        else:
            self._disk.platter.synced(path)

    def truncate(self, path: str, size: int) -> None:
        self._meet(Call("truncate", path, size))
        super().truncate(path, size)
        if self._disk.platter is not None:
            self._disk.platter.truncated(path, size)

    def rename(self, path: str, target: str) -> None:
        self._meet(Call("rename", path))
        super().rename(path, target)
        if self._disk.platter is not None:
            self._disk.platter.renamed(path, target)

    def remove(self, path: str) -> None:
        self._meet(Call("delete", path))
        super().remove(path)
        if self._disk.platter is not None:
            self._disk.platter.deleted(path, durably=False)

    def _meet(self, call: Call, tear: Callable[[], None] = _nothing) -> None:
        with _as_os_errors(call.path):
            self._disk.meet(call, tear)


@contextlib.contextmanager
def _as_os_errors(path: str) -> Generator[None]:
    """Turns SQLite's errors, which faults raise, into those of the system."""
    try:
        yield
    except apsw.FullError as error:
        raise OSError(errno.ENOSPC, "No space left on device", path) from error
    except apsw.ReadOnlyError as error:
        raise OSError(errno.EROFS, "Read-only file system", path) from error
    except apsw.IOError as error:
        raise OSError(errno.EIO, "Input/output error", path) from error
