"""The tables' columns, and rows ↔ records with their checksums checked.

A row class names the columns of a table once. Select and insert lists are made from it
(see `statements`), so a row always has its columns in this order and is read by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

import msgspec
import orjson
from xxhash import xxh3_64_intdigest

from holdfast._port import Start, Write
from holdfast._values.records import (
    CHECKSUM_SHIFT,
    Checkpoint,
    Entry,
    Origin,
    Run,
    Segment,
    ThreadRecord,
    checksum,
)
from holdfast.errors import Corrupt

# Values arrive as they are stored; the checksum shows whether they are right.
Row = tuple[Any, ...]


class ThreadRow(msgspec.Struct, frozen=True):
    """A row of ``thread``."""

    number: int
    name: str
    family: int
    kind: str
    owner: str | None
    agent: str | None
    metadata: bytes
    head: int | None
    changed: int
    created_at: int
    updated_at: int
    forked_thread: str | None
    forked_checkpoint: str | None
    deleted_at: int | None


class CheckpointRow(msgspec.Struct, frozen=True):
    """A row of ``checkpoint_full``: two names that SQLite joins, then the table's."""

    thread_name: str
    parent_id: str | None
    seq: int
    id: str
    family: int
    thread: int
    parent: int | None
    step: int
    saved_at: int
    kind: str
    label: str | None
    tags: str | None
    metadata: bytes
    runs: str
    manifest: bytes
    size: int
    digest: bytes
    link: bytes | None
    checksum: int


class EntryRow(msgspec.Struct, frozen=True):
    """A row of ``journal``."""

    seq: int
    thread: int
    checkpoint: str
    key: str
    value: bytes
    recorded_at: int
    checksum: int


JOINED = 2  # the columns of ``checkpoint_full`` that are not in SQLite's table
# ``thread_full`` joins a thread and its head, which have columns of the same name.
RENAMED = {name: f"thread_{name}" for name in ("kind", "metadata", "family")}
HEAD = len(ThreadRow.__struct_fields__)
HEAD_SEQ = HEAD + CheckpointRow.__struct_fields__.index("seq")
HEAD_NUMBER = ThreadRow.__struct_fields__.index("head")
FORKED_CHECKPOINT = ThreadRow.__struct_fields__.index("forked_checkpoint")

# Fields whose column has another name.
_CHECKPOINT_COLUMNS = {
    "thread": "thread_name",
    "parent": "parent_id",
    "sha256": "digest",
    "thread_number": "thread",
    "encoded_metadata": "metadata",
}
_THREAD_COLUMNS = {
    "id": "name",
    "forked_from": "forked_thread",
    "encoded_metadata": "metadata",
}


def _fields(
    record: type[Checkpoint | ThreadRecord],
    columns: Sequence[str],
    others: dict[str, str],
) -> Callable[[Row], Row]:
    """Takes the fields of a record, in their order, out of a row."""
    names = (others.get(name, name) for name in record.__struct_fields__)
    return itemgetter(*map(columns.index, names))


# The places are looked up once: an attribute for each column costs a third more.
_CHECKPOINT_FIELDS = _fields(
    Checkpoint, CheckpointRow.__struct_fields__, _CHECKPOINT_COLUMNS
)
_TAGS, _RUNS = map(Checkpoint.__struct_fields__.index, ("tags", "runs"))
_BLOBS = itemgetter(
    *map(
        CheckpointRow.__struct_fields__.index,
        ("metadata", "manifest", "digest", "link"),
    )
)
_CHECKSUM, _PARENT, _PARENT_ID = map(
    CheckpointRow.__struct_fields__.index, ("checksum", "parent", "parent_id")
)
_PACKABLE = itemgetter(
    *map(CheckpointRow.__struct_fields__.index, ("manifest", "runs", "size"))
)
_MANIFEST = CheckpointRow.__struct_fields__.index("manifest")
_VALUE = EntryRow.__struct_fields__.index("value")
_THREAD_FIELDS = _fields(ThreadRecord, ThreadRow.__struct_fields__, _THREAD_COLUMNS)
_HEAD, _ORIGIN = map(ThreadRecord.__struct_fields__.index, ("head", "forked_from"))

# A manifest is JSON, or encrypted; bytes that come later are another form of it.
PACKED = b"\x80"

# What the markers in the ``.sql`` files stand for.
COLUMNS: dict[str, Sequence[str]] = {
    "thread": ThreadRow.__struct_fields__,
    "checkpoint": CheckpointRow.__struct_fields__[JOINED:],
    "checkpoint_full": CheckpointRow.__struct_fields__,
    "thread_full": (
        *(RENAMED.get(name, name) for name in ThreadRow.__struct_fields__),
        *CheckpointRow.__struct_fields__,
    ),
    "entry": EntryRow.__struct_fields__,
}


class RowCodec:
    """Rows ↔ records of one dialect.

    ``covered`` names the columns of a checkpoint that its checksum covers besides the
    bytes, ``placed`` those of a journal entry besides its value. ``unpacked`` makes a
    manifest of what is stored, and of the runs and the size beside it.
    """

    def __init__(
        self,
        covered: Sequence[str],
        placed: Sequence[str],
        unpacked: Callable[[bytes, str, int], bytes] | None = None,
    ) -> None:
        self._unpacked = unpacked
        self._covered = itemgetter(*map(CheckpointRow.__struct_fields__.index, covered))
        self._placed = itemgetter(*map(EntryRow.__struct_fields__.index, placed))

    # --- checkpoints and threads ------------------------------------------------------

    def checkpoint_row(
        self, c: Checkpoint, *, seq: int, family: int, thread: int, parent: int | None
    ) -> Row:
        """The columns of a checkpoint with the numbers it has in this store.

        A plain tuple in the order of `CheckpointRow`: every save makes one.
        """
        tags = encode_tags(c.tags) if c.tags else None
        runs = encode_runs(c.runs)
        columns = (
            c.thread, c.parent, seq, c.id, family, thread, parent, c.step, c.saved_at,
            c.kind, c.label, tags, c.encoded_metadata, runs, c.manifest, c.size,
            c.sha256, c.link,
        )  # fmt: skip
        return *columns, self._checksum(columns)

    def _checksum(self, row: Row) -> int:
        metadata, manifest, digest, link = _BLOBS(row)
        link = link or b""
        # The bytes follow the other columns with their lengths: no two rows are alike.
        lengths = (len(metadata), len(manifest), len(link))
        plain = orjson.dumps((*self._covered(row), *lengths))
        covered = b"".join((plain, metadata, manifest, digest, link))
        return xxh3_64_intdigest(covered) - CHECKSUM_SHIFT  # as `checksum`

    def checkpoint(self, row: Row, *, orphaned: bool = False) -> Checkpoint:
        """A row of ``checkpoint_full``; `Corrupt` if it is not what was written.

        ``orphaned`` accepts a row whose parent is gone.
        """
        try:
            if self._unpacked is not None and row[_MANIFEST] >= PACKED:
                manifest = self._unpacked(*_PACKABLE(row))
                row = (*row[:_MANIFEST], manifest, *row[_MANIFEST + 1 :])
            expected = self._checksum(row)
        except TypeError:
            expected = None
        if row[_CHECKSUM] != expected:
            c = CheckpointRow(*row)
            raise Corrupt(f"checkpoint {c.id!r} of thread {c.thread_name!r}")
        if not orphaned and (row[_PARENT] is None) != (row[_PARENT_ID] is None):
            c = CheckpointRow(*row)
            raise Corrupt(f"the parent of checkpoint {c.id!r}", "it is missing")
        fields = [*_CHECKPOINT_FIELDS(row)]
        tags = fields[_TAGS]
        fields[_TAGS] = tuple(orjson.loads(tags)) if tags else ()
        fields[_RUNS] = tuple([Run(*run) for run in orjson.loads(fields[_RUNS])])
        return Checkpoint(*fields)

    def thread(self, row: Row) -> ThreadRecord:
        """A row of ``thread_full``."""
        head = row[HEAD_NUMBER]
        if head is None:
            return to_thread(row, None)
        if row[HEAD_SEQ] is None:
            name = ThreadRow(*row[:HEAD]).name
            raise Corrupt(f"the head of thread {name!r}", "its checkpoint is missing")
        return to_thread(row, self.checkpoint(row[HEAD:]))

    # --- journal entries --------------------------------------------------------------

    def entry_row(self, entry: Entry, *, seq: int, thread: int) -> Row:
        """The columns of a journal entry with the numbers it has in this store.

        A plain tuple in the order of `EntryRow`, the checksum last.
        """
        place, key, data = entry.checkpoint, entry.key, entry.data
        columns = (seq, thread, place, key, data, entry.recorded_at)
        return *columns, self._entry_checksum(columns)

    def entry(self, row: Row, name: str) -> Entry:
        """A row of ``journal``; `Corrupt` if it is not what was written."""
        found = EntryRow(*row)
        if self._entry_checksum(row) != found.checksum:
            raise Corrupt(f"journal entry {found.key!r} of thread {name!r}")
        return Entry(
            name,
            found.checkpoint,
            found.key,
            found.value,
            found.recorded_at,
            found.seq,
        )

    def _entry_checksum(self, row: Row) -> int:
        covered: bytes = repr(self._placed(row)).encode() + row[_VALUE]
        return xxh3_64_intdigest(covered) - CHECKSUM_SHIFT  # as `checksum`


def to_thread(row: Row, head: Checkpoint | None) -> ThreadRecord:
    """The columns of a thread, perhaps followed by others, and its head."""
    fields = [*_THREAD_FIELDS(row)]
    fields[_HEAD] = head
    origin = fields[_ORIGIN]
    fields[_ORIGIN] = Origin(origin, row[FORKED_CHECKPOINT]) if origin else None
    return ThreadRecord(*fields)


def thread_row(thread: ThreadRecord) -> ThreadRow:
    """The columns of a thread."""
    origin = thread.forked_from
    return ThreadRow(
        number=thread.number,
        name=thread.id,
        family=thread.family,
        kind=thread.kind,
        owner=thread.owner,
        agent=thread.agent,
        metadata=thread.encoded_metadata,
        head=thread.head.seq if thread.head else None,
        changed=thread.changed,
        created_at=thread.created_at,
        updated_at=thread.updated_at,
        forked_thread=origin.thread if origin else None,
        forked_checkpoint=origin.checkpoint if origin else None,
        deleted_at=thread.deleted_at,
    )


def new_thread_row(write: Write, start: Start, changed: int) -> ThreadRow:
    """The columns of a thread that a write begins.

    The number is 0, to be given by the database; so is the family unless it is a fork.
    """
    return ThreadRow(
        number=0,
        name=write.thread,
        family=start.head.family if start.head else 0,
        kind=start.kind,
        owner=start.owner,
        agent=start.agent,
        metadata=start.metadata,
        head=start.head.seq if start.head else None,
        changed=changed,
        created_at=write.at,
        updated_at=write.at,
        forked_thread=start.origin.thread if start.origin else None,
        forked_checkpoint=start.origin.checkpoint if start.origin else None,
        deleted_at=None,
    )


def encode_runs(runs: tuple[Run, ...]) -> str:
    """The text of the ``runs`` column."""
    return orjson.dumps([*map(list, runs)]).decode()


def encode_tags(tags: tuple[str, ...]) -> str | None:
    """The text of the ``tags`` column, null for none."""
    return orjson.dumps(tags).decode() if tags else None


# --- segments -------------------------------------------------------------------------

# The part of a segment's key that is its number; SQLite's has the family before it.
NUMBER_BITS = 0xFFFF_FFFF


def segment_checksum(key: int, segment: Segment) -> int:
    """Covers a segment with its key."""
    return checksum(segment.data, key * 256 + segment.packing)


def to_segments(rows: Iterable[Row], family: int) -> list[Segment]:
    """Rows of key, packing, bytes, checksum and count; `Corrupt` if one was changed.

    The count is compared with the content of a block where that is opened.
    """
    segments: list[Segment] = []
    for key, packing, data, found, count in rows:
        number = key & NUMBER_BITS
        # `segment_checksum` written out: a load has hundreds.
        if xxh3_64_intdigest(data, key * 256 + packing) - CHECKSUM_SHIFT != found:
            raise Corrupt(f"segment {number} of family {family}")
        segments.append(Segment(number, data, packing, count))
    return segments


def holds(segments: Sequence[Segment], run: Run) -> bool:
    """True if the segments and blocks, in order, are those that hold the run."""
    expected = run.first
    for segment in segments:
        if not segment.number <= expected <= segment.last:
            return False
        expected = segment.last + 1
    return expected > run.last
