"""The two ciphers of a store: one for contents, one for names that are looked up."""

from __future__ import annotations

import os
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from threading import Lock
from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from holdfast._values.caller_key import KEY_SIZE
from holdfast._values.records import SEPARATOR
from holdfast.errors import Corrupt

# How many names, and how many derived keys, are remembered.
REMEMBERED = 16384
FORM: Final = b"\x01"
ID, SESSION, NONCE, TAG = 9, 12, 12, 16
_KEY_END = len(FORM) + ID
_SESSION_END = _KEY_END + SESSION
START = _SESSION_END + NONCE
OVERHEAD = START + TAG
# The random part of a nonce, behind a number that counts.
CHANCE = 6
COUNT = NONCE - CHANCE
# An encrypted name follows this character and is at least an authentication tag.
MARK = "~"
# The words before the colon in names of our records.
RECORDS = ("agent", "checkpoints", "conversation", "document", "pin")
# The words before the colon in keys of the ledger, and those that are looked up by the
# first part of the rest.
LEDGER = ("anchor", "call", "effect", "grant", "pending", "undo")
DIVIDED = ("anchor", "effect")
_KINDS = "|".join((*RECORDS, *LEDGER))
# In the text of an error the separator may be written as Python shows it.
_SCOPES = r"(?:~[\w-]{22,}(?:\x1f|\\x1f))*"
NAMES = re.compile(rf"{_SCOPES}(?:(?:{_KINDS}):)?~[\w-]{{22,}}(?::~[\w-]{{22,}})?")


def derive(
    secret: bytes, purpose: str, salt: bytes = b"", size: int = KEY_SIZE
) -> bytes:
    """A key for one purpose."""
    info = b"holdfast " + purpose.encode()
    return HKDF(SHA256(), size, salt, info).derive(secret)


def nonce_of(content: bytes) -> bytes:
    """The session of a stored content and its nonce, which must not come twice."""
    return content[_KEY_END:START]


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
        self._last = 0

    def take(self, number: int) -> int:
        """The first of so many numbers that no other gets."""
        with self._lock:
            first = self._last + 1
            self._last += number
        return first


# Stands where no cipher is known yet.
_UNUSED: Final = AESGCM(bytes(KEY_SIZE))


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
        self._keys[key.id] = key

    def drop(self, id_: bytes) -> None:
        """Forget a key that was destroyed, and what was derived from keys."""
        self._keys.pop(id_, None)
        self._ciphers = {}

    def encode(self, content: bytes, place: bytes, key: ContentKey) -> bytes:
        """The ciphertext of a content that belongs to a place."""
        return self.encode_each((content,), (place,), key)[0]

    def encode_each(
        self, contents: Sequence[bytes], places: Iterable[bytes], key: ContentKey
    ) -> list[bytes]:
        """Several contents with their places, as a save has them."""
        session = self._session
        if session.process != os.getpid():  # a fork would repeat its parent's nonces
            self._session = session = _Session()
        head = key.id + session.id
        encrypt = (self._ciphers.get(head) or self._derive(head, key)).encrypt
        # One random part for all contents: two machines that are resumed from one
        # memory encrypt only the same contents with it.
        chance = os.urandom(CHANCE)
        number = session.take(len(contents))
        stored: list[bytes] = []
        for content, place in zip(contents, places, strict=True):
            nonce = number.to_bytes(COUNT, "big") + chance
            stored.append(FORM + head + nonce + encrypt(nonce, content, place))
            number += 1
        return stored

    def decode(self, content: bytes, place: bytes, what: str) -> bytes:
        """The content; `Corrupt` if it was not made for this place with this key."""
        [decoded] = self.decode_each([content], [place], lambda _: what)
        return decoded

    def decode_each(
        self,
        contents: Sequence[bytes],
        places: Iterable[bytes],
        what: Callable[[int], str],
    ) -> list[bytes]:
        """Several contents with their places; ``what`` names one that is damaged.

        A load has hundreds: those that one session wrote share a cipher.
        """
        found: list[bytes] = []
        known, decrypt = b"", _UNUSED.decrypt
        try:
            for content, place in zip(contents, places, strict=True):
                if not known or not content.startswith(known):
                    known = content[:_SESSION_END]
                    decrypt = self._cipher(known).decrypt
                nonce = content[_SESSION_END:START]
                found.append(decrypt(nonce, content[START:], place))
        except (InvalidTag, ValueError):
            broken = contents[len(found)]
            why = "it was changed, or belongs elsewhere"
            if broken[:1] != FORM or len(broken) < OVERHEAD:
                why = "it is not encrypted"
            raise Corrupt(what(len(found)), why) from None
        return found

    def _cipher(self, head: bytes) -> AESGCM:
        """The cipher for what begins like this."""
        if head[:1] != FORM or len(head) < _SESSION_END:
            raise InvalidTag
        known = self._ciphers.get(head[1:])
        if known is not None:
            return known
        key = self._keys.get(head[1:_KEY_END])
        if key is None:
            raise MissingKeyError(head[1:_KEY_END])
        return self._derive(head[1:], key)

    def missing_key(self, content: bytes) -> bytes | None:
        """The id of the key that a content needs, if it was not read yet."""
        id_ = content[1:_KEY_END]
        is_known = id_ in self._keys or content[:1] != FORM
        return None if is_known else id_

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

    A name is bound to its column: the label of a checkpoint is no name of a thread. The
    scopes before a name are encrypted apart, so that what belongs to one begins alike,
    and the name is bound to them.
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = AESSIV(key)
        self.encode = lru_cache(REMEMBERED)(self._encode)
        self.decode = lru_cache(REMEMBERED)(self._decode)

    def prefix(self, prefix: str) -> str:
        """The beginning of all encrypted journal keys that may begin with a prefix."""
        kind, colon, rest = prefix.partition(":")
        if not colon or kind not in LEDGER:
            return ""
        first, ends, _ = rest.partition(":")
        if kind not in DIVIDED or not first or not ends:
            return f"{kind}:"
        return f"{kind}:{self._part(first, ['key', f'{kind}:'])}"

    def scopes(self, name: str) -> str:
        """The encrypted scopes of a name."""
        *scopes, _ = name.split(SEPARATOR)
        hidden = [
            self._part(scope, ["scope", *scopes[:place]]) + SEPARATOR
            for place, scope in enumerate(scopes)
        ]
        return "".join(hidden)

    def _encode(self, name: str, column: str) -> str:
        """The encrypted form of a name."""
        *scopes, own = name.split(SEPARATOR)
        kind, parts = _divided(own, column)
        place = [column, kind, *scopes]
        hidden: list[str] = []
        for part in parts:
            hidden.append(self._part(part, place))
            place.append(part)
        return self.scopes(name) + kind + ":".join(hidden)

    def _part(self, part: str, place: Sequence[str]) -> str:
        bound = [text.encode() for text in place]
        hidden = urlsafe_b64encode(self._cipher.encrypt(part.encode(), bound))
        return MARK + hidden.decode().rstrip("=")

    def _decode(self, hidden: str, column: str) -> str:
        """The name; `Corrupt` if it was not encrypted for this column."""
        *before, own = hidden.split(SEPARATOR)
        kind, mark, rest = own.partition(MARK)
        scopes: list[str] = []
        parts: list[str] = []
        try:
            for text in before:
                scopes.append(self._opened(text[len(MARK) :], ["scope", *scopes]))
            for text in rest.split(f":{MARK}"):
                parts.append(self._opened(text, [column, kind, *scopes, *parts]))
        except (ValueError, InvalidTag):
            mark = ""
        if not mark:
            raise Corrupt(f"the {column} {hidden!r}", "it is not encrypted")
        return SEPARATOR.join([*scopes, kind + ":".join(parts)])

    def _opened(self, text: str, place: Sequence[str]) -> str:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        bound = [text.encode() for text in place]
        return self._cipher.decrypt(data, bound).decode()


def _divided(name: str, column: str) -> tuple[str, list[str]]:
    """The readable beginning of a name, and the parts that are encrypted.

    The kind of our records stays readable, since it is in the record anyway, and
    PostgreSQL takes locks in the order of names: the list of an agent's checkpoints
    must
    come before their pins, whatever they are called. The kind of the ledger's entries
    stays
    readable, too, and the identity of an effect is a part of its own: entries are
    looked up
    by both.
    """
    kind, _, rest = name.partition(":")
    if not rest or kind not in {"thread": RECORDS, "key": LEDGER}.get(column, ()):
        return "", [name]
    first, _, second = rest.partition(":")
    is_divided = kind in DIVIDED and first and second
    return f"{kind}:", [first, second] if is_divided else [rest]
