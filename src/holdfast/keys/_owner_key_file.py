"""A key file with one secret for each owner, without which backups are unreadable."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Self

import msgspec
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap, aes_key_wrap

from holdfast._values.caller_key import KEY_SIZE
from holdfast._values.typed import prepare
from holdfast.errors import Conflict, HoldfastError, Unsupported
from holdfast.keys._secret_file import clear, replace_text, write_new

if sys.platform != "win32":
    import fcntl

FORM = 1
_FULL = {errno.ENOSPC, errno.EDQUOT}


class _Content(msgspec.Struct):
    """The content of the file, as JSON; keys and secrets are base64."""

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
            write_new(made.path, msgspec.json.encode(_Content(os.urandom(KEY_SIZE))))
        except FileExistsError as error:
            text = f"{made.path} exists; choose the name of a new file"
            raise Conflict(text, code="file_exists") from error
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
        while True:
            with self._opened(os.O_RDONLY) as descriptor:
                text = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
                # A file that was replaced meanwhile may be half overwritten.
                if self._is_current(descriptor):
                    return self._decoded(text)

    def _decoded(self, text: bytes) -> _Content:
        try:
            content = msgspec.json.decode(text, type=_Content)
        except (ValueError, RecursionError) as error:
            raise self._unreadable("it is no file of owner keys") from error
        secrets = (content.key, *content.owners.values())
        if content.form != FORM or {len(secret) for secret in secrets} != {KEY_SIZE}:
            raise self._unreadable("this version does not know its form")
        return content

    @contextmanager
    def _changing(self) -> Generator[_Content]:
        """The content of the file, which is replaced if it was changed.

        The old file is overwritten: otherwise its bytes could stay on the disk. A file
        system that keeps old versions still has them. The files that a killed process
        left are overwritten as well, also if nothing is changed now.
        """
        with self._locked() as old:
            before = os.pread(old, os.fstat(old).st_size, 0)
            content = self._decoded(before)
            yield content
            after = msgspec.json.encode(content)
            # Through a link the file itself is replaced, not the link.
            path = os.path.realpath(self.path)
            try:
                # Earlier versions wrote the new content beside a link.
                for place in {path, os.path.abspath(self.path)}:
                    clear(place)
                if after != before:
                    replace_text(path, old, after)
            except OSError as error:
                raise self._unchanged(error) from error

    @contextmanager
    def _locked(self) -> Generator[int]:
        """The file, while no other process changes it."""
        while True:
            with self._opened(os.O_RDWR) as descriptor:
                if sys.platform != "win32":
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                try:
                    # Another may have replaced it while this process waited.
                    if self._is_current(descriptor):
                        yield descriptor
                        return
                finally:
                    # A child that was forked meanwhile has the descriptor still.
                    if sys.platform != "win32":
                        fcntl.flock(descriptor, fcntl.LOCK_UN)

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

    def _is_current(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self.path))
        except OSError as error:
            raise self._unreadable(str(error.strerror)) from error

    def _unreadable(self, why: str) -> Unsupported:
        text = f"the owner key file {self.path} cannot be used: {why}"
        return Unsupported(text, code="wrong_key")

    def _unchanged(self, error: OSError) -> HoldfastError:
        text = (
            f"the owner key file {self.path} cannot be changed:"
            f" {error.filename or self.path}: {error.strerror}; mend that and retry"
        )
        code = "disk_full" if error.errno in _FULL else "io_error"
        return HoldfastError(text, code=code)


prepare(_Content)
