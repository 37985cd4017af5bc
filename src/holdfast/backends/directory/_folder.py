"""The folder of a store: where its files are, who may change them, what errors mean."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Generator, Iterator

from holdfast.backends.directory._files import Files, Seen, looks, seen
from holdfast.backends.directory._names import is_ours
from holdfast.backends.sqlite._writer_queue import Turnstile
from holdfast.errors import Busy, HoldfastError, Unsupported

if sys.platform != "win32":
    import fcntl

# Everything that is not history: the index, the lock, files in the making. Git is told
# inside of it to leave it alone.
WORK = ".holdfast"
LOCK = "lock"
FULL = {errno.ENOSPC, errno.EDQUOT}
REFUSED = {errno.EROFS, errno.EACCES, errno.EPERM}

POLL_SECONDS = 0.002

CLEAN, CHANGING = b"0", b"1"


class Folder:
    """A folder of family files, with a folder of its own for all else."""

    def __init__(self, path: str, files: Files, busy_timeout: float) -> None:
        self.path = path
        self.files = files
        self.work = os.path.join(path, WORK)
        self.lock = FolderLock(os.path.join(self.work, LOCK), busy_timeout)

    def file(self, name: str) -> str:
        """The path of a file of lines."""
        return os.path.join(self.path, name)

    def tool(self, name: str) -> str:
        """The path of a file that is not history."""
        return os.path.join(self.work, name)

    def look(self, name: str) -> Seen | None:
        """How a file of lines looks from outside."""
        return seen(self.file(name))

    def listing(self) -> dict[str, Seen]:
        """How all files of lines look from outside, by name."""
        with os.scandir(self.path) as entries:
            return {
                entry.name: looks(entry.stat())
                for entry in entries
                if is_ours(entry.name) and entry.is_file()
            }

    def pieces(self, name: str, start: int = 0) -> Iterator[bytes]:
        """The lines of a file, each with its end."""
        return self.files.pieces(self.file(name), start)

    def changed_at(self) -> int:
        """When a file of lines was last made, removed or replaced."""
        return os.stat(self.path).st_mtime_ns

    def sync(self) -> None:
        """Make the names of all files of lines survive a power cut."""
        self.files.sync_folder(self.path)

    def sync_work(self) -> None:
        """Make the names of all other files survive a power cut."""
        self.files.sync_folder(self.work)

    @contextlib.contextmanager
    def translated(self) -> Generator[None]:
        """Turns errors of the operating system into ours."""
        try:
            yield
        except OSError as error:
            if isinstance(error, HoldfastError):
                raise
            raise _translation(error, self.path) from error


def _translation(error: OSError, path: str) -> HoldfastError:
    where, why = error.filename or path, error.strerror
    if error.errno in FULL:
        text = f"no space left for {where}: nothing was saved; free some space, retry"
        return HoldfastError(text, code="disk_full")
    if error.errno in REFUSED:
        text = f"{where} cannot be used: {why}; open it where you may write"
        return Unsupported(text, code="read_only")
    return HoldfastError(f"{where}: {why}; retry, or look at the disk", code="io_error")


class FolderLock(Turnstile):
    """Who may change the files: one process at a time, in turn.

    The file is never removed, so that there is only one to lock; if somebody else has
    removed it, the new one is what counts. In it stands whether its owner is changing
    files: whoever finds that has to look at all of them, since an owner that is done
    says so. It need not survive a power cut: opening a store looks at all files.
    """

    def __enter__(self) -> None:
        try:
            while not self._enter():
                self.abandon()
        except BaseException:
            # Interrupted, it may have the lock already.
            self.__exit__(None, None, None)
            raise

    def _enter(self) -> bool:
        if self._file < 0:
            self._make()
        try:
            self._take()
        except BlockingIOError:
            self._queue()
        return self._is_the_one()

    def try_enter(self) -> bool:
        """Take the lock if nobody has it, to be given back by ``__exit__``."""
        try:
            while True:
                if self._file < 0:
                    self._make()
                self._take()
                if self._is_the_one():
                    return True
                self.abandon()
        except BlockingIOError:
            return False

    @contextlib.contextmanager
    def shared(self) -> Generator[None]:
        """Let nobody change files meanwhile; nothing is made for it."""
        try:
            file = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:  # nobody has ever written here
            yield
            return
        try:
            self._share(file)
            yield
        finally:
            os.close(file)

    def _share(self, file: int) -> None:
        deadline = time.monotonic() + self._timeout
        while sys.platform != "win32":
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    text = f"{self._path} stayed locked; retry, or raise busy_timeout"
                    raise Busy(text) from None
                time.sleep(POLL_SECONDS)
            else:
                return

    def close(self) -> None:
        self.abandon()

    @property
    def is_changing(self) -> bool:
        """Whether files are being changed, or were when their changer was stopped."""
        os.lseek(self._file, 0, os.SEEK_SET)
        return os.read(self._file, 1) == CHANGING

    def note(self, *, changing: bool) -> None:
        """Say whether files are being changed."""
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, CHANGING if changing else CLEAN)

    def _make(self) -> None:
        os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
        self._reopen()

    def _is_the_one(self) -> bool:
        if sys.platform == "win32":
            return True
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._file))
        except FileNotFoundError:
            return False
