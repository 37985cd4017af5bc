"""Manifests in a third of their bytes, and back to exactly what they were.

Most of a manifest is the same in every checkpoint, and its digests are base64. Nothing
is kept beside it, as a dictionary would be: the words are ours, not the callers'.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64
from itertools import zip_longest

from holdfast.backends._sql.rows import PACKED

# The first byte is this plus the number of digests, which follow; then comes the text.
_FIRST = PACKED[0]
DIGEST_SIZE, MOST_DIGESTS = 32, 31
LONGEST_NUMBER = 18

# As base64 writes 32 bytes: the last character has two bits that must be zero.
_DIGEST = re.compile(rb'"([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)"')
# Bytes that UTF-8 does not have stand for phrases: a digest, the size of the state, the
# number of the next segment, and these texts. Some texts hold others.
_PLACE, _SIZE, _NEXT = b"\xc0", b"\xc1", b"\xf5"
_PHRASES = (
    (b'{"mapping":{"', b"\xf6"),
    (b'{"single":{"', b"\xf7"),
    (b'":["list",1', b"\xf8"),
    (b'":["text",1', b"\xf9"),
    (b'":["json",', b"\xfa"),
    (b"messages", b"\xfb"),
    (b'],"', b"\xfc"),
    (b'0]},"block":1}', b"\xfd"),
    (b"\xf8\xc1\xc0\xf5", b"\xfe"),
)


def pack_manifest(manifest: bytes, runs: str, size: int) -> bytes:
    """The manifest of a row in fewer bytes, or as it is if they do not lead back."""
    digests = _DIGEST.findall(manifest)
    if len(digests) > MOST_DIGESTS:
        return manifest
    text = _DIGEST.sub(_PLACE, manifest)
    text = text.replace(_number(size), _SIZE).replace(_following(runs), _NEXT)
    for phrase, byte in _PHRASES:
        text = text.replace(phrase, byte)
    packed = b"".join((bytes([_FIRST + len(digests)]), *map(a2b_base64, digests), text))
    leads_back = unpack_manifest(packed, runs, size) == manifest
    return packed if leads_back and len(packed) < len(manifest) else manifest


def unpack_manifest(stored: bytes, runs: str, size: int) -> bytes:
    """The manifest of a row that has it packed."""
    start = 1 + DIGEST_SIZE * (stored[0] - _FIRST)
    text = stored[start:]
    for phrase, byte in reversed(_PHRASES):
        text = text.replace(byte, phrase)
    text = text.replace(_NEXT, _following(runs)).replace(_SIZE, _number(size))
    digests = [
        b'"%s"' % b2a_base64(stored[place : place + DIGEST_SIZE], newline=False)
        for place in range(1, start, DIGEST_SIZE)
    ]
    parts = zip_longest(text.split(_PLACE), digests, fillvalue=b"")
    return b"".join([piece for pair in parts for piece in pair])


def _number(number: int) -> bytes:
    return b",%d," % number


def _following(runs: str) -> bytes:
    """The number of the segment behind the last run."""
    last = runs.strip("[]").rpartition(",")[2][:LONGEST_NUMBER]
    return _number(int(last) + 1 if last.isdecimal() else 0)
