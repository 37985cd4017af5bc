"""The folder of a store: its files, the lock for changing them, what errors mean."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Generator, Iterator

import apsw

from holdfast._values.os_errors import FULL
from holdfast.backends.directory._files import Files, FileStamp, stamp, stamp_of
from holdfast.backends.directory._names import is_ours
from holdfast.backends.sqlite import LockFile, announced, translation
from holdfast.errors import (
    Busy,
    Corrupt,
    FormatMismatch,
    HoldfastError,
    Unsupported,
)

if sys.platform != "win32":
    import fcntl

# Everything that is not history: the index, the lock, unfinished files. A .gitignore in
# it makes Git ignore it.
WORK = ".holdfast"
# Format 1 had a file in the place of the folder of the lock. A program of a version
# that only knows that one cannot lock it any more, and so is stopped at its next
# change. What brings format 3 has to make a folder of this name.
LOCK = os.path.join("lock", "format-2.lock")
REFUSED = {errno.EROFS, errno.EACCES, errno.EPERM}

# The outcome of a change when the disk failed.
UNSAVED = "this change was not saved; {advice} and retry"
UNKNOWN = (
    "it is not known whether this change was saved; {advice}, and see whether it is"
    " there before you repeat it"
)
UNSYNCED = "this change was saved, but a power cut may take it back; {advice}"
_ADVICE = {"disk_full": "free some space", "io_error": "look at the disk"}

# Our statements name nothing that a sound index does not have.
_NOT_IN_A_SOUND_INDEX = apsw.SQLError | apsw.SchemaChangeError | apsw.MismatchError

POLL_SECONDS = 0.002

CLEAN, CHANGING = b"0", b"1"


class Folder:
    """A folder of family files, with a work folder for everything else."""

    def __init__(self, path: str, files: Files, busy_timeout: float) -> None:
        self.path = path
        self.files = files
        self.work = os.path.join(path, WORK)
        self.lock = FolderLock(os.path.join(self.work, LOCK), busy_timeout)
        # Whether a change of this process was neither completed nor undone, or is in
        # the files and not in the index.
        self.is_unfinished = False

    def file(self, name: str) -> str:
        """The path of a file of lines."""
        return os.path.join(self.path, name)

    def work_file(self, name: str) -> str:
        """The path of a file in the work folder."""
        return os.path.join(self.work, name)

    def stamp(self, name: str) -> FileStamp | None:
        """The stamp of this version of a file of lines, ``None`` without a file."""
        return stamp(self.file(name))

    def listing(self) -> dict[str, FileStamp]:
        """The stamps of all files of lines, by name; of links too, to report them."""
        with os.scandir(self.path) as entries:
            return {
                entry.name: stamp_of(entry.stat(follow_symlinks=False))
                for entry in entries
                if is_ours(entry.name) and not entry.is_dir(follow_symlinks=False)
            }

    def pieces(self, name: str, start: int = 0) -> Iterator[bytes]:
        """The lines of a file, each with its line break."""
        return self.files.pieces(self.file(name), start)

    def changed_at(self) -> int:
        """The time when a file of lines was last created, removed or replaced."""
        return os.stat(self.path).st_mtime_ns

    def leave_unfinished(self) -> None:
        """Make the next request of any process look at all files and the intent.

        This process knows by `is_unfinished`, a writer by the note in the lock. Readers
        of other processes compare the time of the folder, which an append leaves alone.
        """
        self.is_unfinished = True
        with contextlib.suppress(OSError):  # only its owner may set it
            os.utime(self.path, ns=(time.time_ns(), self.changed_at() + 1))

    def sync(self) -> None:
        """Make the names of all files of lines survive a power cut."""
        self.files.sync_folder(self.path)

    def sync_work(self) -> None:
        """Make the names in the work folder survive a power cut."""
        self.files.sync_folder(self.work)


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)


class FolderErrors:
    """Turns errors of the index and of the operating system into ours.

    If the disk has failed, they say what became of the change; reads have no outcome.
    """

    __slots__ = ("_index", "_outcome", "_path")

    def __init__(self, index: str, path: str, outcome: str = "") -> None:
        self._index = index
        self._path = path
        self._outcome = outcome

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if isinstance(error, apsw.Error):
            raise _index_failure(error, self._index, self._outcome) from error
        if isinstance(error, OSError) and not isinstance(error, HoldfastError):
            raise failure(error, self._path, self._outcome) from error


def failure(error: OSError, path: str, outcome: str) -> HoldfastError:
    """Our error for one of the operating system."""
    where, why = error.filename or path, error.strerror
    if error.errno in FULL:
        return _disk_failure("disk_full", f"no space left for {where}", outcome)
    if error.errno in REFUSED:
        text = f"{where} cannot be used: {why}; open it where you may write"
        return Unsupported(text, code="read_only")
    return _disk_failure("io_error", f"{where}: {why}", outcome)


def _index_failure(error: apsw.Error, path: str, outcome: str) -> HoldfastError:
    if isinstance(error, _NOT_IN_A_SOUND_INDEX):
        return Corrupt(path, str(error))
    found = translation(error, path)
    if outcome and found.code in _ADVICE:
        return _disk_failure(found.code, f"{path}: {error}", outcome)
    return found


def _disk_failure(code: str, what: str, outcome: str) -> HoldfastError:
    advice = _ADVICE[code]
    text = outcome.format(advice=advice) if outcome else f"{advice} and retry"
    return HoldfastError(f"{what}; {text}", code=code)


class FolderLock:
    """Lets one process at a time change the files, in turn.

    The lock file is never removed, so that there is only one to lock; if a person has
    removed it, the new one is what counts. It says whether the process that holds the
    lock is changing files. A process that gets the lock and finds this note has
    to look at all files: the one before it was stopped half-way. The note need not
    survive a power cut, because opening a store looks at all files.
    """

    def __init__(self, path: str, timeout: float) -> None:
        self._file = LockFile(path, timeout)

    def __enter__(self) -> None:
        try:
            self._take(wait=True)
        except BaseException:
            # If it was interrupted, it may have the lock already.
            self._file.unlock()
            raise

    def __exit__(self, *_: object) -> None:
        self._file.unlock()

    def try_enter(self) -> bool:
        """Take the lock if no process holds it, to be given back by ``__exit__``."""
        return self._take(wait=False)

    def _take(self, *, wait: bool) -> bool:
        file = self._file
        while True:
            if file.descriptor < 0:
                self._open()
            if not file.try_lock():
                if not wait:
                    return False
                file.wait()
            if self._is_current():
                return True
            file.close()

    def _open(self) -> None:
        folder = os.path.dirname(self._file.path)
        while not _is_folder(folder):
            with contextlib.suppress(FileExistsError):
                os.makedirs(folder, 0o700)
            if not _is_folder(folder):
                self._replace_older(folder)
        try:
            self._file.open()
        except IsADirectoryError as error:
            raise FormatMismatch(
                f"a newer version of Holdfast has brought {os.path.dirname(folder)} to"
                " another format while it was open here; this change was not saved:"
                " start this program again with the newer version"
            ) from error

    def _replace_older(self, path: str) -> None:
        """Take the place of the lock of format 1 while no process has it."""
        older = LockFile(path, self._file.timeout)
        try:
            older.open()
            if not older.try_lock():
                older.wait()
            if not _is_folder(path):  # else another process was first
                os.unlink(path)
                os.mkdir(path, 0o700)
        except (FileExistsError, IsADirectoryError):
            return  # a process made the one or the other: the caller looks again
        finally:
            older.close()

    @contextlib.contextmanager
    def shared(self) -> Generator[None]:
        """Keep every process from changing files meanwhile, without making a file."""
        path = self._file.path
        older = os.path.dirname(path)
        try:
            file = os.open(older if os.path.isfile(older) else path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):  # no process writes here
            yield
            return
        try:
            self._share(file)
            yield
        finally:
            os.close(file)

    def _share(self, file: int) -> None:
        deadline = time.monotonic() + self._file.timeout
        while sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline + max(0.0, announced(file)):
                    path = self._file.path
                    text = f"{path} stayed locked; retry, or raise busy_timeout"
                    raise Busy(text) from None
                time.sleep(POLL_SECONDS)
            else:
                return

    def announce(self, seconds: float) -> None:
        """Ask other processes to wait for so long; only with the lock held."""
        self._file.announce(seconds)

    def close(self) -> None:
        """Close the lock file and leave it there."""
        self._file.close()

    @property
    def is_changing(self) -> bool:
        """True if files are being changed, or were when the process was stopped."""
        os.lseek(self._file.descriptor, 0, os.SEEK_SET)
        return os.read(self._file.descriptor, 1) == CHANGING

    def note(self, *, changing: bool) -> None:
        """Say whether files are being changed."""
        os.lseek(self._file.descriptor, 0, os.SEEK_SET)
        os.write(self._file.descriptor, CHANGING if changing else CLEAN)

    def _is_current(self) -> bool:
        """True if the locked file is still the one with the name of the lock."""
        if sys.platform == "win32":
            return True
        found, locked = self._file.path, self._file.descriptor
        try:
            return os.path.samestat(os.stat(found), os.fstat(locked))
        except FileNotFoundError:
            return False
