"""The nouns as frozen records, with their ids, times and checksums.

Records are passed between the operations and the backends. They consist of bytes,
numbers and text, and do not depend on files, SQL or frameworks.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar, cast, overload

import msgspec
from xxhash import xxh3_64_intdigest

from holdfast._values import codec
from holdfast._values.arguments import kind_of
from holdfast._values.limits import LARGEST_METADATA, checked_size
from holdfast.errors import Corrupt, Unstorable

T = TypeVar("T")

# Called by long operations with the number of finished things and that of all.
Progress: TypeAlias = Callable[[int, int], object]

# The kind of the threads that keep states of other threads for an agent's checkpoint.
PIN = "pin"

# The key in a thread's metadata that limits its effects on the world; callers do not
# see it.
EFFECTS = "holdfast:effects"

# The key in a checkpoint's metadata for the trace in which it was saved.
TRACEPARENT = "holdfast:traceparent"

# Separates a scope from a name inside of it, in stored names: "acme", this, "chat".
# Callers cannot write it, so no name outside of a scope looks like one inside.
SEPARATOR = "\x1f"

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_NAME = 512
# All scopes before a name, with their separators.
LONGEST_SCOPE = 256
LARGEST = 1 << 62


class Unset(enum.Enum):
    """The default of arguments for which ``None`` has a meaning."""

    UNSET = enum.auto()


UNSET: Final = Unset.UNSET


def _refuse_call(name: str) -> Callable[[object], None]:
    """A function that refuses ``thread.head()`` and names the property."""

    def refuse(_: object) -> None:
        raise TypeError(
            f"{name} is a property; write `thread.{name}`, without parentheses. In the"
            " sync API it is not awaited either"
        )

    return refuse


class Run(NamedTuple):
    """Consecutive segment numbers of one family, both ends included."""

    first: int
    last: int


# Records are msgspec structs: to copy a dataclass, as every save does, takes ten times
# as long, and defining dataclasses took half of the time of `import holdfast`.


# The packing of a segment that is stored as it is.
PLAIN: Final = 0


class Segment(msgspec.Struct, frozen=True, gc=False):
    """An immutable piece of a value, stored in the form ``packing``.

    A block holds ``count`` segments; ``number`` is the first.
    """

    number: int
    data: bytes
    packing: int = PLAIN
    count: int = 1

    @property
    def last(self) -> int:
        """The number of the last segment in it."""
        return self.number + self.count - 1


class Checkpoint(msgspec.Struct, frozen=True, gc=False):
    """One immutable saved state of a thread; only its label and tags can change.

    ``thread`` is the thread it was saved in, ``parent`` the checkpoint before it,
    ``step`` its distance from the first (an imported one may count more), ``seq`` its
    place in the order of all saves, ``saved_at`` microseconds UTC and ``size`` the
    bytes of the state as JSON; of a mapping with text keys, only the bytes of its
    values.
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
    # A name can be used again after deletion, the number of a thread cannot.
    thread_number: int
    runs: tuple[Run, ...]
    manifest: bytes
    encoded_metadata: bytes
    # The digest of a parent that retention removed, to verify the chain of digests.
    link: bytes | None = None

    if not TYPE_CHECKING:
        __call__ = _refuse_call("head")

    def __repr__(self) -> str:
        marks = f", label={self.label!r}" if self.label else ""
        marks += f", tags={list(self.tags)!r}" if self.tags else ""
        return (
            f"Checkpoint({self.id!r}, thread={self.thread!r}, step={self.step},"
            f" saved_at={self._shown_time()}, kind={self.kind!r}{marks},"
            f" size={self.size})"
        )

    def _repr_html_(self) -> str:
        """A table for a cell of a notebook; the state needs a store to be read."""
        from html import escape  # noqa: PLC0415 - only notebooks need it

        shown = {
            "checkpoint": self.id,
            "thread": self.thread,
            "step": str(self.step),
            "saved": self._shown_time(),
            "kind": self.kind,
            "label": self.label or "",
            "tags": ", ".join(self.tags),
            "size": f"{self.size:,} bytes",
        }
        rows = (
            f"<tr><th>{name}</th><td>{escape(text)}</td></tr>"
            for name, text in shown.items()
            if text
        )
        return f"<table>{''.join(rows)}</table>"

    @property
    def metadata(self) -> dict[str, object]:
        """The ``metadata`` that the caller passed to the save."""
        found = decode_metadata(self.encoded_metadata)
        found.pop(TRACEPARENT, None)
        return found

    @property
    def traceparent(self) -> str | None:
        """The W3C ``traceparent`` of the trace it was saved in, ``None`` without one.

        It is kept while the store has telemetry and the caller is in a trace.
        """
        found = decode_metadata(self.encoded_metadata).get(TRACEPARENT)
        return found if isinstance(found, str) else None

    def _shown_time(self) -> str:
        try:
            return f"{self.time:%Y-%m-%dT%H:%M:%S.%fZ}"
        except OverflowError:  # a clock may give times beyond year 9999
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
    """The thread and checkpoint that a fork started from."""

    thread: str
    checkpoint: str


class ThreadRecord(msgspec.Struct, frozen=True):
    """A thread as listings show it; ``changed`` is the sequence number of its last use.

    ``deleted_at`` is set on the tombstone of a deleted thread.
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

    if not TYPE_CHECKING:
        __call__ = _refuse_call("about")

    @property
    def metadata(self) -> dict[str, object]:
        """The metadata of the thread."""
        found = decode_metadata(self.encoded_metadata)
        found.pop(EFFECTS, None)
        return found

    @property
    def effects(self) -> str | None:
        """A fork's effects: replay, refuse, run or deny; ``None`` if not set."""
        found = decode_metadata(self.encoded_metadata).get(EFFECTS)
        return found if isinstance(found, str) else None


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
        """The recorded value."""
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
    """Part of a listing; ``cursor`` continues it, ``None`` after the last page."""

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


# Makes a checksum fit a signed 64-bit column.
CHECKSUM_SHIFT: Final = 1 << 63


def checksum(data: bytes, seed: int = 0) -> int:
    """A fast checksum that fits a signed 64-bit column; takes the seed modulo 2^64."""
    return xxh3_64_intdigest(data, seed) - CHECKSUM_SHIFT


def encode_metadata(metadata: object, path: str = "metadata") -> bytes:
    """The bytes of a metadata mapping, empty for none."""
    if metadata is None or metadata == {}:
        return b""
    if type(metadata) is not dict:
        raise Unstorable(path, "must be a dict; pass dict(...)")
    fields = cast("dict[object, object]", metadata)
    if TRACEPARENT in fields:
        raise Unstorable(path, f"the key {TRACEPARENT!r} is Holdfast's; use another")
    most = LARGEST_METADATA
    return checked_size(codec.encode(fields, path, most), path, most)


def decode_metadata(data: bytes) -> dict[str, object]:
    """The inverse of `encode_metadata`; `Corrupt` for any other value."""
    if not data:
        return {}
    found = codec.decode(data)
    kind = type(found)
    if kind is not dict:  # a folder can have any line
        raise Corrupt("stored metadata", "they are no dict")
    return cast("dict[str, object]", found)


def with_traceparent(metadata: bytes, traceparent: str) -> bytes:
    """Encoded metadata of a checkpoint with a trace, unless they have one already."""
    return codec.encode({TRACEPARENT: traceparent} | decode_metadata(metadata))


def without_traceparent(metadata: bytes) -> bytes:
    """Encoded metadata as `encode_metadata` made them, without a trace."""
    if TRACEPARENT.encode() not in metadata:
        return metadata
    fields = decode_metadata(metadata)
    fields.pop(TRACEPARENT, None)
    return encode_metadata(fields)


def checked_name(
    name: object, what: str = "thread id", longest: int = LONGEST_NAME
) -> str:
    """``name`` if it is valid: text without NUL, 1 to 512 bytes of UTF-8."""
    checked = checked_stored_name(name, what, longest)
    if SEPARATOR in checked:
        text = "has U+001F, which ends the name of a scope; use store.scope(...)"
        raise Unstorable(what, text)
    return checked


def checked_stored_name(
    name: object, what: str = "name", longest: int = LONGEST_NAME
) -> str:
    """Like `checked_name`, for names from a store, which may begin with scopes."""
    if type(name) is not str:
        raise Unstorable(what, f"must be text, not {kind_of(name)}")
    if not name or "\0" in name:
        raise Unstorable(what, "must not be empty and must not contain NUL")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise Unstorable(what, "must be valid Unicode; it has a surrogate") from None
    if size > longest:
        scopes, _, name_there = name.rpartition(SEPARATOR)
        size = len(name_there.encode())
        if size > longest or len(scopes.encode()) > LONGEST_SCOPE:
            raise Unstorable(what, f"is {size} bytes long; {longest} are allowed")
    return name


def checked_limit(limit: int | None) -> int | None:
    """``limit`` if it is valid: a positive number, or ``None`` for no limit."""
    if limit is not None and (type(limit) is not int or not 0 < limit < LARGEST):
        raise Unstorable("limit", f"must be a positive number or None, not {limit!r}")
    return limit


def check_cursor(cursor: object) -> None:
    """Refuse a value that cannot be the cursor of a page."""
    if cursor is not None and (type(cursor) is not int or abs(cursor) > LARGEST):
        text = f"must be the cursor of a page or None, not {cursor!r}"
        raise Unstorable("cursor", text)


def check_filter(text: object, what: str) -> None:
    """Refuse a value that cannot be a name, kind or owner, or the beginning of one."""
    if text is None:
        return
    if type(text) is not str:
        raise Unstorable(what, f"must be text, not {kind_of(text)}")
    if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise Unstorable(what, "must be valid Unicode without NUL")
