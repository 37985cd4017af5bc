"""The folder `.holdfast` of a workspace: its index, its lock, restores under way."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Generator

from holdfast._values.files import OWN_FOLDER
from holdfast._values.os_errors import is_nothing, unwritten, writing
from holdfast.errors import Busy, Unsupported
from holdfast.workspace import _descriptors

if sys.platform != "win32":
    import fcntl

INDEX = "index"
LOCK = "lock"
_PAUSE = 0.01
_NOT_WRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS}
# The coarsest clock of a file system in use, for folders that cannot be written.
_COARSEST = 2_000_000_000


class OwnFolder:
    """`.holdfast` in a workspace; without one (``at`` is ``None``) nothing is kept."""

    def __init__(self, path: str, at: int | None, patience: float) -> None:
        self.path = path
        self.at = at
        self.patience = patience

    def read(self, name: str) -> bytes | None:
        """The content of a file in it, ``None`` if there is none."""
        if self.at is None:
            return None
        try:
            with _descriptors.opened(name, _descriptors.READ, self.at) as file:
                return b"".join(_descriptors.pieces(file))
        except OSError as error:
            if is_nothing(error):
                return None
            raise

    def write(self, name: str, data: bytes, *, durable: bool = True) -> None:
        """Replace a file in it; a crash leaves the old or the new one."""
        assert self.at is not None
        # What has to be durable is written by one process at a time.
        beside = f"{name}.new" if durable else f"{name}.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(beside, dir_fd=self.at)
        with _descriptors.opened(beside, _descriptors.NEW, self.at) as file:
            _descriptors.write_all(file, data)
            if durable:
                os.fsync(file)
        os.rename(beside, name, src_dir_fd=self.at, dst_dir_fd=self.at)
        if durable:
            os.fsync(self.at)

    def remove(self, name: str) -> None:
        """Remove a file in it, durably."""
        assert self.at is not None
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.at)
        os.fsync(self.at)

    @contextlib.contextmanager
    def locked(self, *, alone: bool) -> Generator[int]:
        """Keep restores of other processes out, or with ``alone`` all others.

        Gives the time by the clock of the file system.
        """
        if self.at is None:
            yield time.time_ns() - _COARSEST
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with _descriptors.opened(LOCK, flags, self.at) as file:
            self._wait(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            os.utime(file)
            yield os.fstat(file).st_mtime_ns

    def _wait(self, file: int, kind: int) -> None:
        until = time.monotonic() + self.patience
        while True:
            try:
                fcntl.flock(file, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise Busy(
                        f"the workspace {self.path} is being restored or scanned by"
                        " another process; try again when it has ended"
                    ) from None
                time.sleep(_PAUSE)
            else:
                return


@contextlib.contextmanager
def own_folder(top: int, path: str, patience: float) -> Generator[OwnFolder]:
    """The folder `.holdfast`, made if it is missing and can be made."""
    at = _open(top, path)
    try:
        yield OwnFolder(path, at, patience)
    finally:
        if at is not None:
            os.close(at)


def _open(top: int, path: str) -> int | None:
    try:
        return os.open(OWN_FOLDER, _descriptors.FOLDER, dir_fd=top)
    except FileNotFoundError:
        return _make(top, path)
    except (NotADirectoryError, OSError) as error:
        raise Unsupported(
            f"{OWN_FOLDER} in {path} is not a folder that can be used"
            f" ({error.strerror}); move it away",
            code="workspace_blocked",
        ) from error


def _make(top: int, path: str) -> int | None:
    try:
        os.mkdir(OWN_FOLDER, 0o700, dir_fd=top)
    except FileExistsError:  # another process was first
        return _open(top, path)
    except OSError as error:
        if error.errno in _NOT_WRITABLE:
            return None
        raise unwritten(f"{path}/{OWN_FOLDER}", error) from error
    at = os.open(OWN_FOLDER, _descriptors.FOLDER, dir_fd=top)
    with (
        writing(f"{path}/{OWN_FOLDER}/.gitignore"),
        _descriptors.opened(".gitignore", _descriptors.NEW, at, 0o644) as file,
    ):
        _descriptors.write_all(file, b"*\n")
    return at
