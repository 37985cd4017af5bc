"""What a line says, and how to check that it is whole.

A line is a JSON object. It starts with the number of bytes that follow its checksum,
and with the checksum (XXH3-64) of these bytes. Among them, ``after`` is the checksum of
the line before, so that a missing line is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
from msgspec import Raw
from xxhash import xxh3_64_hexdigest

FIRST = "0" * 16
NOTHING = Raw()
LONGEST_HEAD = 60


class ThreadPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A thread from now on; without a ``kind``, only what every save changes."""

    number: int
    name: str
    head: int | None = None
    changed: int
    updated_at: int
    kind: str | None = None
    owner: str | None = None
    agent: str | None = None
    metadata: Raw = NOTHING
    created_at: int | None = None
    forked_thread: str | None = None
    forked_checkpoint: str | None = None
    deleted_at: int | None = None


class CheckpointPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A saved state; ``parent`` and ``thread`` by number."""

    seq: int
    id: str
    thread: int
    parent: int | None = None
    step: int
    saved_at: int
    kind: str = "save"
    label: str | None = None
    tags: list[str] = []
    metadata: Raw = NOTHING
    size: int
    sha256: str
    link: str | None = None
    runs: list[tuple[int, int]]
    manifest: Raw


class MarkPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The label and tags that a checkpoint has from now on."""

    seq: int
    label: str | None = None
    tags: list[str] = []


class EntryPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A journal entry."""

    seq: int
    thread: int
    checkpoint: str = ""
    key: str
    value: Raw
    recorded_at: int


class MovePart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change that is neither a save nor a journal entry; checkpoints by number."""

    seq: int
    thread: int
    kind: str
    source: int | None = None
    target: int | None = None
    moved_at: int


class LineContent(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All that a line says.

    If a transaction wrote several lines to the file, ``part`` says which of how many
    this is. They count together or not at all. ``forgotten`` are the numbers of journal
    entries that are removed.
    """

    after: str = ""
    part: tuple[int, int] | None = None
    format: int | None = None
    family: int = 0
    thread: ThreadPart | None = None
    checkpoint: CheckpointPart | None = None
    journal: list[EntryPart] = []
    forgotten: list[int] = []
    moves: list[MovePart] = []
    marks: list[MarkPart] = []
    settings: dict[str, Raw] = {}
    segments: dict[int, Raw] = {}


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(LineContent)
_HEAD = re.compile(rb'\{"bytes":([0-9]+),"check":"([0-9a-f]{16})",')
_LINKS = re.compile(rb'"after":"([0-9a-f]{16})"(?:,"part":\[([0-9]+),([0-9]+)\])?[,}]')


class StoredLine(NamedTuple):
    """A whole line of a file; ``is_open`` if it lacks its line break."""

    start: int
    end: int
    check: str
    after: str
    part: tuple[int, int]
    body: bytes
    is_open: bool = False

    def content(self) -> LineContent:
        """What the line says."""
        return _decoder.decode(b"{" + self.body)


class BadLine(NamedTuple):
    """Bytes that are no whole line; ``is_short`` if only the rest may be missing."""

    start: int
    end: int
    why: str
    is_short: bool = False


class NotALineError(ValueError):
    """Why bytes are no whole line, and whether only the rest may be missing."""

    def __init__(self, why: str, *, is_short: bool = False) -> None:
        super().__init__(why)
        self.is_short = is_short


class LineEncoder:
    """Encodes lines that follow one another.

    ``tail`` is the checksum of the last line, ``size`` the bytes of all.
    """

    def __init__(self, tail: str = FIRST) -> None:
        self.tail = tail
        self.size = 0

    def encode(self, parts: Iterable[LineContent]) -> Iterator[bytes]:
        """The lines that say something, one for each content."""
        for part in parts:
            part.after = self.tail
            line, self.tail = encode_line(part)
            self.size += len(line)
            yield line


def encode_line(part: msgspec.Struct) -> tuple[bytes, str]:
    """A line and its checksum."""
    body = _encoder.encode(part)[1:]
    check = xxh3_64_hexdigest(body)
    return b'{"bytes":%d,"check":"%b",%b\n' % (len(body), check.encode(), body), check


def read_lines(
    pieces: Iterable[bytes], start: int = 0
) -> Iterator[StoredLine | BadLine]:
    """The lines of a file, given in pieces that end where lines end."""
    for piece in pieces:
        end = start + len(piece)
        yield _read_line(piece, start, end)
        start = end


def _read_line(piece: bytes, start: int, end: int) -> StoredLine | BadLine:
    try:
        check, body = checked(piece)
    except NotALineError as error:
        return BadLine(start, end, str(error), error.is_short)
    links = _LINKS.match(body)
    if links is None:
        return BadLine(start, end, "it does not say which line it follows")
    part = (int(links[2] or 1), int(links[3] or 1))
    # A last line that only lacks its line break is whole: some editors leave it out.
    is_open = not piece.endswith(b"\n")
    return StoredLine(start, end, check, links[1].decode(), part, body, is_open)


def checked(piece: bytes) -> tuple[str, bytes]:
    """The checksum of a line and the bytes that follow it; raises if it is bad."""
    text = piece.removesuffix(b"\n")
    is_open = text == piece
    head = _HEAD.match(text)
    if head is None:
        why = "it does not begin like a line of ours"
        raise NotALineError(why, is_short=is_open and len(text) < LONGEST_HEAD)
    body, check, length = text[head.end() :], head[2].decode(), int(head[1])
    if len(body) != length:
        why = f"it has {len(body)} bytes behind its checksum, not {length}"
        raise NotALineError(why, is_short=is_open and len(body) < length)
    if xxh3_64_hexdigest(body) != check:
        raise NotALineError("its checksum does not match")
    return check, body
