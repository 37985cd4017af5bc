"""Small files with secrets: written whole, readable by their owner only, overwritten.

A process may be killed while it replaces such a file. The files that it leaves have
fixed names beside the file, and the next change overwrites and removes them.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import sys

from holdfast.errors import Conflict

# The new content before it is in place, and the old one until it is overwritten.
PART, OLD = ".part", ".old"
# Earlier versions had the number of a process before `.part`.
_LEFT = r"(\.[0-9]+)?\.part|\.old"
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
# A name may have become something else: links are not followed, pipes not waited for.
if sys.platform == "win32":
    _CHANGE = os.O_RDWR | os.O_BINARY
else:
    _CHANGE = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def write_new(path: str, text: bytes) -> None:
    """Write a file that did not exist, durably; only the user can read it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = os.open(path, flags, 0o600)
    try:
        _write(descriptor, text)
    finally:
        os.close(descriptor)
    sync_folder(path)


def replace_text(path: str, descriptor: int, text: bytes) -> None:
    """Replace a file, which ``descriptor`` has open, and overwrite what it held.

    The caller holds the lock of the file, and has called `clear`.
    """
    part, old = path + PART, path + OLD
    write_new(part, text)
    try:
        # Under this name the next change finds the old content if this one is killed.
        os.link(path, old)
    except OSError as error:
        # A file system without links: a kill leaves the bytes on the disk, in no file.
        if error.errno not in _NO_LINKS:
            raise
    os.rename(part, path)
    # Not before the new file is certain to be found after a power cut.
    sync_folder(path)
    _overwrite(descriptor)
    _remove(old)
    sync_folder(path)


def clear(path: str) -> None:
    """Overwrite and remove what killed changes of a file left beside it.

    The caller holds the lock of the file: no other process has such a file in use.
    """
    folder, name = os.path.split(path)
    is_left = re.compile(f"{re.escape(name)}({_LEFT})").fullmatch
    left = [each for each in os.listdir(folder) if is_left(each)]
    for each in left:
        _discard(os.path.join(folder, each), path)
    if left:
        sync_folder(path)


def sync_folder(path: str) -> None:
    """Make the name of a file survive a power cut."""
    if sys.platform == "win32":
        return
    descriptor = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _discard(left: str, path: str) -> None:
    """Overwrite and remove one file, unless it is in use or may be another's."""
    if not stat.S_ISLNK(os.lstat(left).st_mode):
        descriptor = os.open(left, _CHANGE)
        try:
            about = os.fstat(descriptor)
            # Killed after the link and before the renaming, both are one file.
            if not os.path.samestat(about, os.stat(path)):
                if not stat.S_ISREG(about.st_mode) or about.st_nlink != 1:
                    raise _in_the_way(left)
                _overwrite(descriptor)
        finally:
            os.close(descriptor)
    _remove(left)


def _in_the_way(left: str) -> Conflict:
    text = (
        f"{left} is in the way: it is no plain file, or has another name too; look what"
        " it is, and remove it"
    )
    return Conflict(text, code="file_exists")


def _remove(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _overwrite(descriptor: int) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    _write(descriptor, bytes(os.fstat(descriptor).st_size))


def _write(descriptor: int, text: bytes) -> None:
    view = memoryview(text)
    while view:
        view = view[os.write(descriptor, view) :]
    os.fsync(descriptor)
