"""A layer that stores nothing in the form in which it was saved.

It is what an encrypting layer is, without the cryptography: every content gets a mark
and a checksum of its location, and none of its bytes stays what it was.
"""

from __future__ import annotations

from xxhash import xxh3_64_digest

from holdfast.backends import ContentLayer
from holdfast.backends.sqlite import SqliteBackend
from holdfast.errors import Corrupt

MARK = b"hidden: "
START = len(MARK) + 8
FLIPPED = bytes(byte ^ 0x5A for byte in range(256))
LAST_CONTROL = 31

# Everything that was encoded since a test emptied it.
ENCODED: set[bytes] = set()


class Hidden(ContentLayer):
    """Stores every content with all of its bytes changed."""

    searches = True

    def encode(self, content, location):
        ENCODED.add(content)
        return self._head(location) + content.translate(FLIPPED)

    def decode(self, content, location):
        if content[:START] != self._head(location):
            raise Corrupt(f"the content of {location}", "it was not encoded for it")
        return content[START:].translate(FLIPPED)

    def encode_text(self, text):
        # Character by character, so that a part of a text stays a part of it.
        return "".join(chr(ord(c) ^ 1) if ord(c) > LAST_CONTROL else c for c in text)

    def _head(self, location):
        return MARK + xxh3_64_digest(repr(location).encode())


def open_hidden(address, **options):
    """The entry point of addresses such as ``hidden:agents.db``."""
    return Hidden(SqliteBackend(address.removeprefix("hidden:"), **options))
