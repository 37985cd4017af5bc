"""An archive as a sequence of frames, each with its length and a checksum.

A frame is a line ``kind length checksum``, then the payload and a line feed. The last
frame, ``end``, holds the SHA-256 of all bytes before it.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import BinaryIO, NamedTuple

from xxhash import xxh3_64_hexdigest

from holdfast.errors import Corrupt, FormatMismatch

VERSION = 1
MAGIC = b"holdfast archive "
# The largest length of a frame: a segment is at most a blob of SQLite.
LARGEST = 1 << 30
CHUNK = 1 << 20
LONGEST_LINE = 64

_LINE = re.compile(rb"([a-z]{1,16}) ([0-9]{1,10}) ([0-9a-f]{16})\n")
_COMPRESSED = {b"\x1f\x8b": "gzip -d", b"\x28\xb5\x2f\xfd": "zstd -d"}


class Frame(NamedTuple):
    """One frame of an archive."""

    kind: str
    payload: bytes


def framed(kind: str, payload: bytes) -> bytes:
    """A frame as bytes."""
    check = xxh3_64_hexdigest(payload)
    return b"%b %d %b\n%b\n" % (kind.encode(), len(payload), check.encode(), payload)


class FrameWriter:
    """Writes frames to a file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = sha256()
        self._put(b"%b%d\n" % (MAGIC, VERSION))

    def write(self, kind: str, payload: bytes) -> None:
        self._put(framed(kind, payload))

    def copy(self, text: bytes) -> None:
        """Write frames, or a part of them, that were made before."""
        self._put(text)

    def end(self) -> str:
        """Write the last frame; returns the digest of all before it."""
        digest = self._hash.hexdigest()
        self._put(framed("end", digest.encode()))
        return digest

    def _put(self, text: bytes) -> None:
        self._hash.update(text)
        self._file.write(text)


class FrameReader:
    """Reads frames, and refuses those that `FrameWriter` would not have written.

    Never takes more memory than the file has bytes, whatever lengths it claims.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self.name = file, name
        self._hash = sha256()
        self._begin()

    def _begin(self) -> None:
        line = self._file.readline(LONGEST_LINE)
        for magic, command in _COMPRESSED.items():
            if line.startswith(magic):
                text = f"{self.name} is compressed; {command} it first"
                raise FormatMismatch(text)
        version = line.removeprefix(MAGIC).strip()
        if not line.startswith(MAGIC) or not version.isdigit():
            raise FormatMismatch(f"{self.name} is not a Holdfast archive")
        if int(version) != VERSION:
            raise FormatMismatch(
                f"{self.name} is an archive of version {int(version)}, not {VERSION};"
                " upgrade holdfast"
            )
        self._hash.update(line)

    def read(self, *kinds: str) -> Frame:
        """The next frame, which must be of one of these kinds."""
        line = self._file.readline(LONGEST_LINE)
        match = _LINE.fullmatch(line)
        if match is None:
            raise self.damage("it ends too early" if not line else "a line is damaged")
        kind, length = match[1].decode(), int(match[2])
        if kind not in kinds:
            raise self.damage(f"it has a frame {kind!r} where {kinds[0]!r} is due")
        if length > LARGEST:
            raise self.damage(f"a frame claims to be {length} bytes long")
        payload = self._payload(length)
        if xxh3_64_hexdigest(payload).encode() != match[3]:
            raise self.damage(f"the checksum of a {kind} does not match")
        if kind != "end":
            self._hash.update(b"%b%b\n" % (line, payload))
        return Frame(kind, payload)

    def end(self) -> str:
        """Check that all of it was read, and its digest, which is returned."""
        digest = self._hash.hexdigest()
        if self.read("end").payload != digest.encode():
            raise self.damage("its digest does not match its content")
        if self._file.read(1):
            raise self.damage("something follows its end")
        return digest

    def _payload(self, length: int) -> bytes:
        parts: list[bytes] = []
        left = length + 1
        while left:
            part = self._file.read(min(left, CHUNK))
            if not part:
                raise self.damage("it ends too early")
            parts.append(part)
            left -= len(part)
        payload = b"".join(parts)
        if payload[-1:] != b"\n":
            raise self.damage("a frame is not as long as it claims")
        return payload[:-1]

    def damage(self, what: str) -> Corrupt:
        """The error for a damaged file."""
        return ArchiveCorrupt(self.name, what)


class ArchiveCorrupt(Corrupt):
    """Like `Corrupt`; the advice is to copy or export the archive again."""

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(what, detail)
        self.message = (
            f"{what} is damaged: {detail}; nothing of it was imported: copy or export"
            " it again"
        )
