"""The store's key, wrapped by the caller's."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import unicodedata

import msgspec
from cryptography.hazmat.primitives.keywrap import (
    InvalidUnwrap,
    aes_key_unwrap,
    aes_key_wrap,
)
from msgspec.structs import replace

from holdfast._values.caller_key import KEY_SIZE, CallerKey, KeyWrapper, OwnerSecrets
from holdfast._values.typed import prepare
from holdfast.errors import Conflict, Corrupt, FormatMismatch, Unsupported
from holdfast.keys._ciphers import derive
from holdfast.keys._secret_file import write_new

# In stores of the first form, moves have no proofs (`_moves.py`).
FORMS = WITHOUT_PROOFS, FORM = 1, 2
# Half a second and 128 MB for each passphrase that is tried.
SCRYPT = {"n": 1 << 17, "r": 8, "p": 1}
SCRYPT_MEMORY = 1 << 28
LARGEST_FILE = 4096
_DIGITS = re.compile(rb"[0-9a-fA-F\s]*")


class KeyHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """The setting ``keys``: a store's wrapped key, and how it was wrapped.

    ``check`` shows that an unwrapped key is the right one, and that no other program
    has
    changed the form.
    """

    store: bytes
    scheme: str
    wrapped: bytes
    check: bytes
    salt: bytes = b""
    n: int = 0
    r: int = 0
    p: int = 0
    form: int = WITHOUT_PROOFS


class StoreKey(msgspec.Struct, frozen=True):
    """The store's id and its key, from which every other key is derived or wrapped."""

    store: bytes
    secret: bytes
    form: int = FORM

    def __repr__(self) -> str:
        return f"StoreKey({self.store.hex()})"


def secrets_of(key: CallerKey) -> OwnerSecrets | None:
    """A caller's key as what has the secrets of owners, if it has them."""
    return key if isinstance(key, OwnerSecrets) else None


def new_store_key() -> StoreKey:
    """A key for a new store."""
    return StoreKey(os.urandom(16), os.urandom(KEY_SIZE))


def wrapped(store: StoreKey, key: CallerKey) -> bytes:
    """The setting that lets a caller with a key open a store."""
    form = store.form
    check = _check(store.secret, form)
    if isinstance(key, str):
        salt = os.urandom(16)
        secret = _of_passphrase(key, salt, **SCRYPT)
        header = KeyHeader(
            store.store,
            "passphrase",
            aes_key_wrap(secret, store.secret),
            check,
            salt,
            **SCRYPT,
            form=form,
        )
    elif isinstance(key, KeyWrapper):
        kept = key.wrap(store.secret)
        header = KeyHeader(store.store, "object", kept, check, form=form)
    else:
        kept = aes_key_wrap(
            derive(_of_bytes(key), "wrapping", store.store), store.secret
        )
        header = KeyHeader(store.store, "key", kept, check, form=form)
    return msgspec.json.encode(header)


def unwrapped(setting: bytes, key: CallerKey) -> StoreKey:
    """The store's key; `Unsupported` (code ``wrong_key``) with another caller's key."""
    header = _header(setting)
    given = _scheme(key)
    if given != header.scheme:
        raise wrong_key(f"it needs {_NAMES[header.scheme]}, not {_NAMES[given]}")
    try:
        secret = _unwrap(header, key)
    except InvalidUnwrap:
        raise wrong_key(f"this is not its {_NOUNS[given]}") from None
    if not hmac.compare_digest(_check(secret, header.form), header.check):
        raise wrong_key(f"this is not its {_NOUNS[given]}")
    return StoreKey(header.store, secret, header.form)


def with_proofs(setting: bytes, store: StoreKey) -> bytes:
    """The same setting, from now on of a store whose moves all have proofs."""
    check = _check(store.secret, FORM)
    return msgspec.json.encode(replace(_header(setting), check=check, form=FORM))


def wrong_key(why: str) -> Unsupported:
    """The key does not open the store."""
    return Unsupported(f"the key does not open this store: {why}", code="wrong_key")


_NAMES = {
    "key": "a key of 32 bytes or a key file",
    "passphrase": "a passphrase",
    "object": "an object with wrap and unwrap",
}
_NOUNS = {"key": "key", "passphrase": "passphrase", "object": "key"}


def _header(setting: bytes) -> KeyHeader:
    try:
        header = msgspec.json.decode(setting, type=KeyHeader)
    except (ValueError, RecursionError):
        header = None
    if header is None or header.form not in FORMS or header.scheme not in _NAMES:
        text = "its keys are of a form that this version does not know; update Holdfast"
        raise FormatMismatch(text)
    # Other costs were not written by us. Some would take all memory, or hours.
    cost = {"n": header.n, "r": header.r, "p": header.p}
    if header.scheme == "passphrase" and cost != SCRYPT:
        raise Corrupt("the setting 'keys'", f"its scrypt parameters are {cost}")
    return header


def _scheme(key: CallerKey) -> str:
    if isinstance(key, str):
        return "passphrase"
    return "object" if isinstance(key, KeyWrapper) else "key"


def _unwrap(header: KeyHeader, key: CallerKey) -> bytes:
    if isinstance(key, str):
        secret = _of_passphrase(key, header.salt, n=header.n, r=header.r, p=header.p)
        return aes_key_unwrap(secret, header.wrapped)
    if isinstance(key, KeyWrapper):
        return key.unwrap(header.wrapped)
    return aes_key_unwrap(
        derive(_of_bytes(key), "wrapping", header.store), header.wrapped
    )


def _of_passphrase(passphrase: str, salt: bytes, *, n: int, r: int, p: int) -> bytes:
    # Another keyboard may compose the same letters otherwise.
    text = unicodedata.normalize("NFC", passphrase).encode()
    return hashlib.scrypt(
        text, salt=salt, n=n, r=r, p=p, maxmem=SCRYPT_MEMORY, dklen=KEY_SIZE
    )


def _of_bytes(key: bytes | os.PathLike[str]) -> bytes:
    return key if isinstance(key, bytes) else read_key_file(key)


def read_key_file(path: os.PathLike[str]) -> bytes:
    """The key in a file: 32 bytes, or 64 hexadecimal digits.

    32 bytes that are digits are refused: they are a file of digits that was cut short,
    and a store that was made with them could not be opened with the whole file.
    """
    try:
        with open(path, "rb") as file:
            found = file.read(LARGEST_FILE)
    except OSError as error:
        text = f"the key file {os.fspath(path)} cannot be read: {error.strerror}"
        raise Unsupported(text, code="wrong_key") from error
    if len(found) == KEY_SIZE:
        if _DIGITS.fullmatch(found):
            text = (
                f"{os.fspath(path)} is cut short, it holds 32 of 64 digits: put back"
                " the whole file, or give key= these 32 bytes if they are the key"
            )
            raise Unsupported(text, code="wrong_key")
        return found
    try:
        key = bytes.fromhex(found.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_SIZE:
        text = (
            f"{os.fspath(path)} is no key file: it must hold 32 bytes or 64 hex digits"
        )
        raise Unsupported(text, code="wrong_key")
    return key


def write_key_file(path: str | os.PathLike[str]) -> None:
    """Make a file with a new key, readable by its owner only; never replaces one."""
    try:
        write_new(os.fspath(path), os.urandom(KEY_SIZE).hex().encode() + b"\n")
    except FileExistsError as error:
        text = f"{os.fspath(path)} exists; choose the name of a new file"
        raise Conflict(text, code="file_exists") from error


def _check(secret: bytes, form: int) -> bytes:
    purpose = "check" if form == WITHOUT_PROOFS else f"check of form {form}"
    return derive(secret, purpose, size=16)


prepare(KeyHeader)
