"""The tombstone of an erased thread, which has a digest instead of a name.

It refuses late writers like any tombstone, and is never removed. The digest is salted
with random bytes of the store, so that it is not the same in two stores. In a plain
store, a reader of the file can still guess names; in an encrypted store the digest is
made of the encrypted name.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from holdfast._values.records import SEPARATOR, ThreadRecord

# The kind of such a row.
ERASED: Final = "erased"
PREFIX: Final = "erased:"
DIGITS = 32
# The setting that holds the salt; it is made by the first erasure.
SALT_NAME: Final = "graves"
SALT_SIZE = 32


def grave_name(salt: bytes, name: str) -> str:
    """The digest that replaces a name; it stays in the scope of the name."""
    scopes = name[: name.rfind(SEPARATOR) + 1]
    return scopes + PREFIX + sha256(salt + name.encode()).hexdigest()[:DIGITS]


def is_grave(thread: ThreadRecord) -> bool:
    """True for the tombstone of an erased thread."""
    return thread.kind == ERASED and thread.deleted_at is not None
