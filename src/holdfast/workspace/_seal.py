"""Seals on files in `.holdfast`: they were written by this user on this machine.

A folder can come from anywhere, and bring a `.holdfast` with a restore under way. So
the files that a later opening acts on are sealed: with a secret that is kept beside the
user's other state and never in a workspace, and for this one `.holdfast` alone.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import stat
import sys
from collections.abc import Generator
from secrets import token_bytes

from holdfast._values.files import OWN_FOLDER
from holdfast._values.os_errors import is_nothing, writing
from holdfast.errors import HoldfastError, Unsupported
from holdfast.workspace import _descriptors

if sys.platform != "win32":
    import fcntl

VARIABLE = "XDG_STATE_HOME"
SECRET = "secret"  # noqa: S105 - the name of a file
_SIZE = 32
_MARK = b"holdfast seal 1\n"


def state_folder() -> str:
    """The folder of the secret; no snapshot or restore has a folder of this name."""
    given = os.environ.get(VARIABLE, "")
    if not os.path.isabs(given):
        given = os.path.expanduser("~/.local/state")
    if not os.path.isabs(given):
        raise Unsupported(
            "this user has no home folder, where the secret is kept by which"
            f" interrupted restores are known; set {VARIABLE}",
            code="no_state_folder",
        )
    return os.path.join(given, OWN_FOLDER)


def make_secret() -> None:
    """See that there is a secret, and that no power cut takes it away."""
    folder = state_folder()
    with writing(folder):
        _make_folders(folder)
        with _opened(folder) as at:
            # The next process gets the lock when the secret is durable.
            fcntl.flock(at, fcntl.LOCK_EX)
            if _secret(at, folder) is None:
                _sync(os.path.dirname(folder))
                _write_secret(at)


def _make_folders(folder: str) -> None:
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    _make_folders(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    _sync(above)


def _sync(folder: str) -> None:
    with _folder(folder) as at:
        os.fsync(at)


def _write_secret(at: int) -> None:
    beside = f"{SECRET}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(beside, dir_fd=at)
    with _descriptors.opened(beside, _descriptors.NEW, at) as file:
        _descriptors.write_all(file, token_bytes(_SIZE))
        os.fsync(file)
    os.rename(beside, SECRET, src_dir_fd=at, dst_dir_fd=at)
    os.fsync(at)


def sealed(own: int, kind: str, payload: bytes) -> bytes:
    """The bytes of a file of a kind in the folder `.holdfast` that is open."""
    secret = _find_secret()
    assert secret is not None, "make_secret() comes first"
    return _MARK + _seal(secret, own, kind, payload) + payload


def unsealed(own: int, kind: str, data: bytes) -> bytes | None:
    """The sealed payload, ``None`` if another user, folder or kind sealed it."""
    start = len(_MARK) + _SIZE
    payload, secret = data[start:], _find_secret()
    if secret is None:
        return None
    expected = _MARK + _seal(secret, own, kind, payload)
    return payload if hmac.compare_digest(expected, data[:start]) else None


def _seal(secret: bytes, own: int, kind: str, payload: bytes) -> bytes:
    # The inode stays when a folder is moved, and is another one in a copy.
    place = f"{kind} {os.fstat(own).st_ino}\n".encode()
    return hmac.digest(secret, place + payload, "sha256")


def _find_secret() -> bytes | None:
    folder = state_folder()
    try:
        with _opened(folder) as at:
            return _secret(at, folder)
    except OSError as error:
        if is_nothing(error):
            return None
        raise


@contextlib.contextmanager
def _opened(folder: str) -> Generator[int]:
    """The folder of the secret, if no other user can write to it."""
    with _folder(folder) as at:
        if not _is_own(os.fstat(at), 0o022):
            raise _not_own(folder)
        yield at


@contextlib.contextmanager
def _folder(folder: str) -> Generator[int]:
    # A link is followed: where the state of a user is, the user decides.
    at = os.open(folder, _descriptors.FOLDER & ~os.O_NOFOLLOW)
    try:
        yield at
    finally:
        os.close(at)


def _secret(at: int, folder: str) -> bytes | None:
    try:
        with _descriptors.opened(SECRET, _descriptors.READ, at) as file:
            about, found = os.fstat(file), os.read(file, _SIZE + 1)
    except FileNotFoundError:
        return None
    is_whole = stat.S_ISREG(about.st_mode) and len(found) == _SIZE
    if not is_whole or not _is_own(about, 0o077):
        raise _not_own(os.path.join(folder, SECRET))
    return found


def _is_own(about: os.stat_result, others: int) -> bool:
    return about.st_uid == os.geteuid() and not about.st_mode & others


def _not_own(path: str) -> HoldfastError:
    return Unsupported(
        f"{path}, by which interrupted restores are known, is not this user's alone or"
        f" is damaged; remove it, or set {VARIABLE} to a folder of this user",
        code="no_state_folder",
    )
