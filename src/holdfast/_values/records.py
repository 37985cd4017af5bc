"""The nouns as frozen records, with the ids, times and checksums they are made of.

Records travel between the operations and the backends; they hold bytes, numbers and
text, and know nothing of files, SQL or frameworks.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, TypeAlias, TypeVar, cast, overload

import msgspec
from xxhash import xxh3_64_intdigest

from holdfast._values import codec
from holdfast.errors import Unstorable

T = TypeVar("T")

# What kind of thread holds on to a checkpoint of another on behalf of an agent's.
PIN = "pin"

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_NAME = 512
LARGEST = 1 << 62


class Unset(enum.Enum):
    """The default of arguments for which ``None`` means something."""

    UNSET = enum.auto()


UNSET: Final = Unset.UNSET

# Called during long work with how much is done, of how much.
Progress: TypeAlias = Callable[[int, int], object]


class Run(NamedTuple):
    """Consecutive segment numbers of one family, both ends included."""

    first: int
    last: int


class Segment(NamedTuple):
    """An immutable piece of a value; ``packing`` 0 means the bytes as they are."""

    number: int
    data: bytes
    packing: int = 0


# Records are msgspec structs: dataclasses cost ten times as much to copy, which every
# save does, and took half of the time of `import holdfast`.


class Checkpoint(msgspec.Struct, frozen=True, gc=False):
    """One immutable saved state of a thread; only its label and tags can change.

    ``thread`` is the thread it was saved in, ``parent`` the checkpoint before it,
    ``step`` its distance from the first, ``seq`` its place in the order of all saves,
    ``saved_at`` microseconds UTC and ``size`` the bytes of the state as JSON.
    """

    id: str
    thread: str
    parent: str | None
    seq: int
    step: int
    saved_at: int
    kind: str
    label: str | None
    tags: tuple[str, ...]
    size: int
    sha256: bytes
    family: int
    # A name can be used again after deletion; a thread's number never is.
    thread_number: int
    runs: tuple[Run, ...]
    manifest: bytes
    encoded_metadata: bytes
    # The digest of a parent that retention removed: it keeps the chain checkable.
    link: bytes | None = None

    def __repr__(self) -> str:
        marks = f", label={self.label!r}" if self.label else ""
        marks += f", tags={list(self.tags)!r}" if self.tags else ""
        return (
            f"Checkpoint({self.id!r}, thread={self.thread!r}, step={self.step},"
            f" saved_at={self._shown_time()}, kind={self.kind!r}{marks},"
            f" size={self.size})"
        )

    @property
    def metadata(self) -> dict[str, object]:
        """What was given as ``metadata`` when saving."""
        return decode_metadata(self.encoded_metadata)

    def _shown_time(self) -> str:
        try:
            return f"{self.time:%Y-%m-%dT%H:%M:%S.%fZ}"
        except OverflowError:  # a clock may go beyond the calendar
            return str(self.saved_at)

    @property
    def digest(self) -> str:
        """Covers state, metadata and the parent's digest: a chain to the first save."""
        return f"sha256:{self.sha256.hex()}"

    @property
    def time(self) -> datetime:
        """``saved_at`` as an aware datetime in UTC."""
        return EPOCH + timedelta(microseconds=self.saved_at)


class Origin(NamedTuple):
    """Where a fork started."""

    thread: str
    checkpoint: str


class ThreadRecord(msgspec.Struct, frozen=True):
    """A thread as listings show it; ``changed`` is the sequence number of its last use.

    ``deleted_at`` is set on the tombstone of a thread that is gone.
    """

    id: str
    kind: str
    owner: str | None
    agent: str | None
    head: Checkpoint | None
    forked_from: Origin | None
    created_at: int
    updated_at: int
    deleted_at: int | None
    changed: int
    family: int
    number: int
    encoded_metadata: bytes

    @property
    def metadata(self) -> dict[str, object]:
        """What the thread was given as metadata."""
        return decode_metadata(self.encoded_metadata)


class Entry(msgspec.Struct, frozen=True):
    """A journal entry: a value recorded once under a key.

    ``checkpoint`` is the id it belongs to, which need not have been saved yet, or ""
    for an entry of the thread itself.
    """

    thread: str
    checkpoint: str
    key: str
    data: bytes
    recorded_at: int = 0
    seq: int = 0

    @property
    def value(self) -> object:
        """What was recorded."""
        return codec.decode(self.data)


class Move(msgspec.Struct, frozen=True):
    """One line of a thread's log of head moves, ``source`` and ``target`` by id."""

    seq: int
    thread: str
    kind: str
    source: str | None
    target: str | None
    moved_at: int


class Change(msgspec.Struct, frozen=True):
    """One line of the store's feed; ``subject`` is a checkpoint id or a journal key."""

    seq: int
    thread: str
    kind: str
    subject: str | None
    at: int


class Page(Sequence[T]):
    """Some of a listing; ``cursor`` continues it, ``None`` when this was the last."""

    __slots__ = ("cursor", "items")

    def __init__(self, items: tuple[T, ...], cursor: int | None = None) -> None:
        self.items = items
        self.cursor = cursor

    def __repr__(self) -> str:
        return f"Page({list(self.items)!r}, cursor={self.cursor})"

    def __iter__(self) -> Iterator[T]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self.items[index]


def checksum(data: bytes, seed: int = 0) -> int:
    """A fast checksum that fits a signed 64-bit column."""
    return xxh3_64_intdigest(data, seed & 0xFFFF_FFFF_FFFF_FFFF) - (1 << 63)


def encode_metadata(metadata: object, path: str = "metadata") -> bytes:
    """The bytes of a metadata mapping, empty for none."""
    if metadata is None or metadata == {}:
        return b""
    if type(metadata) is dict:
        return codec.encode(cast("object", metadata), path)
    raise Unstorable(path, "must be a dict; pass dict(...)")


def decode_metadata(data: bytes) -> dict[str, object]:
    """The inverse of `encode_metadata`."""
    # Only dicts are encoded, and checksums vouch for the bytes.
    return cast("dict[str, object]", codec.decode(data)) if data else {}


def checked_name(
    name: object, what: str = "thread id", longest: int = LONGEST_NAME
) -> str:
    """``name`` if it can name something: text without NUL, 1 to 512 bytes of UTF-8."""
    if type(name) is not str:
        raise Unstorable(what, f"must be text, not {type(name).__name__}")
    if not name or "\0" in name:
        raise Unstorable(what, "must not be empty and must not contain NUL")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise Unstorable(what, "must be valid Unicode; it has a surrogate") from None
    if size > longest:
        raise Unstorable(what, f"is {size} bytes long; {longest} are allowed")
    return name


def checked_limit(limit: int | None) -> int | None:
    """``limit`` if it can bound a page: a positive number, or ``None`` for no bound."""
    if limit is not None and (type(limit) is not int or not 0 < limit < LARGEST):
        raise Unstorable("limit", f"must be a positive number or None, not {limit!r}")
    return limit


def check_cursor(cursor: object) -> None:
    """Refuse what cannot be where a page ended."""
    if cursor is not None and (type(cursor) is not int or abs(cursor) > LARGEST):
        text = f"must be the cursor of a page or None, not {cursor!r}"
        raise Unstorable("cursor", text)


def check_filter(text: object, what: str) -> None:
    """Refuse what no name, kind or owner can be, or begin with."""
    if text is None:
        return
    if type(text) is not str:
        raise Unstorable(what, f"must be text, not {type(text).__name__}")
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Unstorable(what, "must be valid Unicode without NUL")
