"""The two ciphers of a store: one for contents, one for names that are looked up."""

from __future__ import annotations

import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from threading import Lock
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from holdfast._values.caller_key import KEY_SIZE
from holdfast.errors import Corrupt

# How many names, and how many derived keys, are remembered.
REMEMBERED = 16384
FORM: Final = b"\x01"
ID, SESSION, NONCE, TAG = 8, 12, 12, 16
_KEY_END = len(FORM) + ID
_SESSION_END = _KEY_END + SESSION
START = _SESSION_END + NONCE
OVERHEAD = START + TAG
# The random part of a nonce, behind a number that counts.
CHANCE = 6
# An encrypted name begins with this character and is at least an authentication tag.
MARK = "~"
NAMES = re.compile(r"~[A-Za-z0-9_-]{22,}")


def derive(
    secret: bytes, purpose: str, salt: bytes = b"", size: int = KEY_SIZE
) -> bytes:
    """A key for one purpose."""
    info = b"holdfast " + purpose.encode()
    return HKDF(SHA256(), size, salt, info).derive(secret)


class ContentKey(NamedTuple):
    """The key of an owner, or of what has no owner; ``id`` stands before contents."""

    id: bytes
    secret: bytes

    def __repr__(self) -> str:
        return f"ContentKey({self.id.hex()})"


class MissingKeyError(Exception):
    """A content needs a key that was not read yet."""

    def __init__(self, id_: bytes) -> None:
        super().__init__(id_.hex())
        self.id = id_


class _Session:
    """Nonces of one process, none of them twice.

    A nonce is a number that counts, under a key that only this session encrypts with:
    it is unique by construction. A random part follows the number, for the case that a
    virtual machine is resumed twice from the same memory.
    """

    def __init__(self) -> None:
        self.id = os.urandom(SESSION)
        self.process = os.getpid()
        self._lock = Lock()
        self._count = 0

    def nonce(self) -> bytes:
        with self._lock:
            self._count = count = self._count + 1
        return count.to_bytes(NONCE - CHANCE, "big") + os.urandom(CHANCE)


class ContentCipher:
    """AES-256-GCM under keys of several owners, each content bound to its place.

    A stored content is: the form, the key's id, the session, the nonce, the ciphertext.
    """

    def __init__(self) -> None:
        self._session = _Session()
        self._keys: dict[bytes, ContentKey] = {}
        self._ciphers: dict[bytes, AESGCM] = {}

    def add(self, key: ContentKey) -> None:
        """Take a key that contents may be encrypted with."""
        known = self._keys.get(key.id)
        if known is not None and known.secret != key.secret:
            self._ciphers = {}  # the owner began anew with another key
        self._keys[key.id] = key

    def find(self, id_: bytes) -> ContentKey | None:
        """A key that was taken before."""
        return self._keys.get(id_)

    def encode(self, content: bytes, place: bytes, key: ContentKey) -> bytes:
        """What is stored instead of a content that belongs to a place."""
        session = self._session
        if session.process != os.getpid():  # a fork would repeat its parent's nonces
            self._session = session = _Session()
        nonce = session.nonce()
        head = key.id + session.id
        cipher = self._ciphers.get(head) or self._derive(head, key)
        return b"".join((FORM, head, nonce, cipher.encrypt(nonce, content, place)))

    def decode(self, content: bytes, place: bytes, what: str) -> bytes:
        """The content; `Corrupt` if it was not made for this place with this key."""
        if content[:1] != FORM or len(content) < OVERHEAD:
            raise Corrupt(what, "it is not encrypted")
        head = content[1:_SESSION_END]
        cipher = self._ciphers.get(head)
        if cipher is None:
            key = self._keys.get(head[:ID])
            if key is None:
                raise MissingKeyError(head[:ID])
            cipher = self._derive(head, key)
        try:
            return cipher.decrypt(content[_SESSION_END:START], content[START:], place)
        except InvalidTag:
            text = "it was changed, or belongs to another place"
            raise Corrupt(what, text) from None

    def key_of(self, content: bytes) -> ContentKey:
        """The key of a content that was decoded before."""
        return self._keys[content[1:_KEY_END]]

    def _derive(self, head: bytes, key: ContentKey) -> AESGCM:
        if len(self._ciphers) >= REMEMBERED:
            self._ciphers = {}
        cipher = AESGCM(derive(key.secret, "contents", head[ID:]))
        self._ciphers[head] = cipher
        return cipher


class NameCipher:
    """AES-SIV: equal names of a column are equal when encrypted, so they can be found.

    A name is bound to its column: the label of a checkpoint is no name of a thread.
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = AESSIV(key)
        self.encode = lru_cache(REMEMBERED)(self._encode)
        self.decode = lru_cache(REMEMBERED)(self._decode)

    def _encode(self, name: str, column: str) -> str:
        """What is stored instead of a name."""
        hidden = self._cipher.encrypt(name.encode(), [column.encode()])
        return MARK + urlsafe_b64encode(hidden).decode().rstrip("=")

    def _decode(self, hidden: str, column: str) -> str:
        """The name; `Corrupt` if it was not encrypted for this column."""
        mark, text = hidden[:1], hidden[1:]
        try:
            data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
            name = self._cipher.decrypt(data, [column.encode()]).decode()
        except (ValueError, InvalidTag):
            mark = ""
        if mark != MARK:
            raise Corrupt(f"the {column} {hidden!r}", "it is not encrypted")
        return name
