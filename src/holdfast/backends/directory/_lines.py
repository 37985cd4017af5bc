"""The content of a line, and the check that it is whole.

A line is a JSON object. It starts with the number of bytes that follow its checksum,
and with the checksum (XXH3-64) of these bytes. Among them, ``after`` is the checksum of
the line before, so that a missing line is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Raw
from xxhash import xxh3_64_hexdigest

FIRST = "0" * 16
NOTHING = Raw()
LONGEST_HEAD = 60


# Numbers that leave room for those that follow them in a key of 63 bits.
Number = Annotated[int, Meta(ge=0, lt=1 << 30)]
Seq = Annotated[int, Meta(ge=0, lt=1 << 62)]
Piece = Annotated[int, Meta(ge=0, lt=1 << 32)]
Time = Annotated[int, Meta(ge=-(1 << 62), lt=1 << 62)]


class ThreadPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A thread from now on; without a ``kind``, only what every save changes."""

    number: Number
    name: str
    head: Seq | None = None
    changed: Seq
    updated_at: Time
    kind: str | None = None
    owner: str | None = None
    agent: str | None = None
    metadata: Raw = NOTHING
    created_at: Time | None = None
    forked_thread: str | None = None
    forked_checkpoint: str | None = None
    deleted_at: Time | None = None

    def __post_init__(self) -> None:
        """Refuse half of an origin."""
        if (self.forked_thread is None) is not (self.forked_checkpoint is None):
            raise ValueError("a fork has a thread and a checkpoint")


class CheckpointPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A saved state; ``parent`` and ``thread`` by number."""

    seq: Seq
    id: str
    thread: Number
    parent: Seq | None = None
    step: Seq
    saved_at: Time
    kind: str = "save"
    label: str | None = None
    tags: list[str] = []
    metadata: Raw = NOTHING
    size: Seq
    sha256: str
    link: str | None = None
    runs: list[tuple[Piece, Piece]]
    manifest: Raw


class MarkPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The label and tags that a checkpoint has from now on."""

    seq: Seq
    label: str | None = None
    tags: list[str] = []


class EntryPart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A journal entry."""

    seq: Seq
    thread: Number
    checkpoint: str = ""
    key: str
    value: Raw
    recorded_at: Time


class MovePart(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change that is neither a save nor a journal entry; checkpoints by number."""

    seq: Seq
    thread: Number
    kind: str
    source: Seq | None = None
    target: Seq | None = None
    moved_at: Time


class LineContent(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The content of a line.

    If a transaction wrote several lines to the file, ``part`` says which of how many
    this is. They count together or not at all. ``forgotten`` are the numbers of journal
    entries that are removed.
    """

    after: str = ""
    part: tuple[int, int] | None = None
    format: int | None = None
    family: Number = 0
    thread: ThreadPart | None = None
    checkpoint: CheckpointPart | None = None
    journal: list[EntryPart] = []
    forgotten: list[Seq] = []
    moves: list[MovePart] = []
    marks: list[MarkPart] = []
    settings: dict[str, Raw] = {}
    segments: dict[Piece, Raw] = {}


class FormatPart(msgspec.Struct):
    """The one field of a line that every version understands."""

    format: int | None = None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(LineContent)
_format_decoder = msgspec.json.Decoder(FormatPart)
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
        """The decoded content of the line."""
        return _decoder.decode(b"{" + self.body)

    def format(self) -> int:
        """The format it gives its folder, whatever else a newer version writes."""
        try:
            return _format_decoder.decode(b"{" + self.body).format or 0
        except (ValueError, RecursionError):
            return 0  # it is damaged, which is reported when it is read


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
