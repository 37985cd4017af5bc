"""The forms of the key with which a caller opens an encrypted store."""

from __future__ import annotations

import os
from typing import Protocol, TypeAlias, cast, runtime_checkable

from holdfast.errors import Unstorable, Unsupported

KEY_SIZE = 32


@runtime_checkable
class KeyWrapper(Protocol):
    """A key that stays where it is, such as in a KMS or a keyring."""

    def wrap(self, key: bytes) -> bytes:
        """The key of a store, encrypted."""
        ...

    def unwrap(self, wrapped: bytes) -> bytes:
        """The inverse of `wrap`; what it raises for another's key is passed on."""
        ...


@runtime_checkable
class OwnerSecrets(KeyWrapper, Protocol):
    """A key that also keeps a secret for each owner, outside of the store.

    An owner is named by an id that the store makes. Contents of the owner can be read
    only with the secret.
    """

    def find_secret(self, owner: str) -> bytes | None:
        """The secret of an owner, ``None`` if there is none or it was destroyed."""
        ...

    def make_secret(self, owner: str) -> bytes:
        """The secret of an owner, 32 bytes; durable when it is returned."""
        ...

    def destroy_secret(self, owner: str) -> None:
        """Forget the secret of an owner for good; again does nothing."""
        ...


CallerKey: TypeAlias = bytes | str | os.PathLike[str] | KeyWrapper


def checked_key(key: object) -> CallerKey:
    """``key`` if it has one of the forms; the error never shows it."""
    is_bytes = isinstance(key, bytes) and len(key) == KEY_SIZE
    is_passphrase = isinstance(key, str) and key != "" and _is_unicode(key)
    if is_bytes or is_passphrase or isinstance(key, os.PathLike | KeyWrapper):
        return cast("CallerKey", key)
    raise Unstorable(
        "key",
        "must be 32 bytes, a passphrase, the path of a key file (a pathlib.Path),"
        " or an object with wrap and unwrap",
    )


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def not_encrypted() -> Unsupported:
    return Unsupported(
        "the store is not encrypted; open it without a key, and copy_to() a new store"
        " with one",
        code="not_encrypted",
    )
