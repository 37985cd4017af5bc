"""A key file with one secret for each owner, without which backups are unreadable."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Self

import msgspec
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap, aes_key_wrap

from holdfast._values.caller_key import KEY_SIZE
from holdfast.errors import Conflict, Unsupported

if sys.platform != "win32":
    import fcntl

FORM = 1
# How often a file is read again that another process is just replacing.
READS = 100


class _Content(msgspec.Struct):
    """What stands in the file, as JSON; keys and secrets are base64."""

    key: bytes
    owners: dict[str, bytes] = {}
    form: int = FORM


class OwnerKeyFile:
    """A key for ``open(key=...)`` that keeps a secret of each owner, outside the store.

    Erasing an owner removes the secret from the file. From then on nothing that was
    saved for this owner can be read, in earlier copies of the store either. The file
    must not be in these copies, and copies of the file itself must be as short-lived as
    erasures are to be certain. Several stores and processes may use one file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if not hasattr(os, "pread"):
            raise Unsupported(
                "Windows cannot replace a file that is open, as a file of owner keys"
                " has to be; use a key file without owners, or Linux or macOS"
            )
        self.path = os.fspath(path)

    def __repr__(self) -> str:
        return f"OwnerKeyFile({self.path!r})"

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Self:
        """Make a new file, readable by its owner only; never replaces one."""
        made = cls(path)
        try:
            _write(made.path, _Content(os.urandom(KEY_SIZE)))
        except FileExistsError as error:
            text = f"{made.path} exists; choose the name of a new file"
            raise Conflict(text, code="file_exists") from error
        _sync_folder(made.path)
        return made

    def wrap(self, key: bytes) -> bytes:
        """The key of a store, encrypted with the key in the file."""
        return aes_key_wrap(self._read().key, key)

    def unwrap(self, wrapped: bytes) -> bytes:
        """The inverse of `wrap`."""
        return aes_key_unwrap(self._read().key, wrapped)

    def find_secret(self, owner: str) -> bytes | None:
        """The secret of an owner, by an id that a store gives, if there is one."""
        return self._read().owners.get(owner)

    def make_secret(self, owner: str) -> bytes:
        """The secret of an owner; it is made and synced if there is none."""
        with self._changing() as content:
            return content.owners.setdefault(owner, os.urandom(KEY_SIZE))

    def destroy_secret(self, owner: str) -> None:
        """Remove the secret of an owner, and overwrite the file that had it."""
        with self._changing() as content:
            content.owners.pop(owner, None)

    def _read(self) -> _Content:
        for _ in range(READS):
            with self._opened(os.O_RDONLY) as descriptor:
                text = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
            # What was replaced while it was read is overwritten with zeros.
            if text.strip(b"\0"):
                return self._decoded(text)
        raise self._unreadable("it is empty")

    def _decoded(self, text: bytes) -> _Content:
        try:
            content = msgspec.json.decode(text, type=_Content)
        except msgspec.DecodeError as error:
            raise self._unreadable("it is no file of owner keys") from error
        if content.form != FORM or len(content.key) != KEY_SIZE:
            raise self._unreadable("this version does not know its form")
        return content

    @contextmanager
    def _changing(self) -> Generator[_Content]:
        """The content of the file, which is replaced if it was changed.

        The old file is overwritten before it is given up: its bytes may stay on the
        disk. A file system that keeps old versions still has them.
        """
        with self._locked() as old:
            size = os.fstat(old).st_size
            before = os.pread(old, size, 0)
            content = self._decoded(before)
            yield content
            if msgspec.json.encode(content) == before:
                return
            part = f"{self.path}.{os.getpid()}.part"
            _write(part, content)
            os.replace(part, self.path)
            _sync_folder(self.path)
            os.pwrite(old, b"\0" * size, 0)
            os.fsync(old)

    @contextmanager
    def _locked(self) -> Generator[int]:
        """The file, while no other process changes it."""
        while True:
            with self._opened(os.O_RDWR) as descriptor:
                if sys.platform != "win32":
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                # Another process may have replaced it while this one waited.
                if os.path.samestat(os.fstat(descriptor), os.stat(self.path)):
                    yield descriptor
                    return

    @contextmanager
    def _opened(self, flags: int) -> Generator[int]:
        try:
            descriptor = os.open(self.path, flags)
        except OSError as error:
            raise self._unreadable(str(error.strerror)) from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _unreadable(self, why: str) -> Unsupported:
        text = f"the owner key file {self.path} cannot be used: {why}"
        return Unsupported(text, code="wrong_key")


def _write(path: str, content: _Content) -> None:
    """Write a new file and sync it."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    descriptor = os.open(path, flags, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(content))
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: str) -> None:
    descriptor = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
