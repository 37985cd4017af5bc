"""From lines back to rows of the index, exactly as they were when written."""

from __future__ import annotations

import apsw
from msgspec.structs import asdict, replace

from holdfast._values.records import Checkpoint, Entry, Run, Segment
from holdfast.backends._sql.rows import CheckpointRow
from holdfast.backends.directory._blobs import elements_from_json, from_json
from holdfast.backends.directory._catalog import rows
from holdfast.backends.directory._lines import (
    CheckpointPart,
    EntryPart,
    LineContent,
    MarkPart,
    MovePart,
    ThreadPart,
)
from holdfast.backends.sqlite import _rows
from holdfast.backends.sqlite._statements import QUERIES


class FamilyClash(Exception):
    """A file has a line about something that belongs to another file."""


class LineLoader:
    """Loads the lines of one family into the index, from a file of so many bytes."""

    def __init__(self, db: apsw.Connection, family: int, size: int) -> None:
        self._db = db
        self._family = family
        self._size = size

    def take_in(self, part: LineContent) -> None:
        """Insert the rows of a line."""
        if part.family != self._family:
            raise FamilyClash(
                f"it holds lines of families {self._family}, {part.family}"
            )
        if part.settings and self._family:
            raise ValueError("it has settings, which belong to the store")
        try:
            self._take_in(part)
        except apsw.ConstraintError as error:
            raise FamilyClash(str(error)) from error

    def _take_in(self, part: LineContent) -> None:
        if part.thread is not None:
            self._take_thread(part.thread)
        if part.checkpoint is not None:
            self._take_checkpoint(part.checkpoint)
        for entry in part.journal:
            self._take_entry(entry)
        for seq in part.forgotten:
            rows(self._db, "forget_entry", seq=seq, family=self._family)
        for move in part.moves:
            self._take_move(move)
        for mark in part.marks:
            self._take_mark(mark)
        for name, value in part.settings.items():
            rows(self._db, "take_setting", name=name, value=from_json(value))
        self._take_segments(part)

    def _take_thread(self, part: ThreadPart) -> None:
        self._claim(part.number)
        values = asdict(part)
        if part.kind is None:
            keys = ("number", "head", "changed", "updated_at")
            moved = {key: values[key] for key in keys}
            rows(self._db, "take_thread_move", family=self._family, **moved)
            return
        values["metadata"] = from_json(part.metadata)
        if not rows(self._db, "take_thread", family=self._family, **values):
            raise FamilyClash(f"thread number {part.number} belongs to another file")

    def _take_checkpoint(self, part: CheckpointPart) -> None:
        if sum(max(0, last - first) for first, last in part.runs) > self._size:
            raise ValueError("a checkpoint has more segments than the file has bytes")
        self._claim(part.thread)
        checkpoint = Checkpoint(
            id=part.id,
            thread="",
            parent=None,
            seq=part.seq,
            step=part.step,
            saved_at=part.saved_at,
            kind=part.kind,
            label=part.label,
            tags=tuple(part.tags),
            size=part.size,
            sha256=bytes.fromhex(part.sha256),
            family=self._family,
            thread_number=part.thread,
            runs=tuple(Run(*run) for run in part.runs),
            manifest=from_json(part.manifest),
            encoded_metadata=from_json(part.metadata),
            link=None if part.link is None else bytes.fromhex(part.link),
        )
        row = _rows.checkpoint_row(
            checkpoint, part.seq, self._family, part.thread, part.parent
        )
        self._db.execute(QUERIES["insert_checkpoint"], row)

    def _take_mark(self, part: MarkPart) -> None:
        # The line of the checkpoint may be damaged, or that of its thread or parent:
        # the row is taken as it is, if there is one, and joined with nothing.
        for row in rows(self._db, "marked", seq=part.seq, family=self._family):
            found = _rows.CODEC.checkpoint((None, None, *row), orphaned=True)
            marked = replace(found, label=part.label, tags=tuple(part.tags))
            parent = CheckpointRow("", None, *row).parent
            changed = _rows.checkpoint_row(
                marked, part.seq, self._family, found.thread_number, parent
            )
            values = asdict(CheckpointRow("", None, *changed))
            self._db.execute(QUERIES["update_checkpoint"], values)

    def _take_entry(self, part: EntryPart) -> None:
        self._claim(part.thread)
        value = from_json(part.value)
        entry = Entry("", part.checkpoint, part.key, value)
        rows(
            self._db,
            "take_entry",
            seq=part.seq,
            thread=part.thread,
            checkpoint=part.checkpoint,
            key=part.key,
            value=value,
            recorded_at=part.recorded_at,
            checksum=_rows.entry_checksum(part.thread, entry),
        )

    def _take_move(self, part: MovePart) -> None:
        self._claim(part.thread)
        values = asdict(part)
        values["at"] = values.pop("moved_at")
        self._db.execute(QUERIES["insert_move"], values)

    def _take_segments(self, part: LineContent) -> None:
        for number, raw in part.segments.items():
            segment = Segment(number, elements_from_json(raw))
            row = _rows.segment_row(self._family, segment)
            self._db.execute(QUERIES["insert_segment"], row)

    def _claim(self, thread: int) -> None:
        """Reserve a thread number for this family."""
        if not rows(self._db, "take_member", thread=thread, family=self._family):
            raise FamilyClash(f"thread number {thread} belongs to another file")


def drop_family(db: apsw.Connection, family: int) -> None:
    """Remove all rows of a family; the search index has to be compared with it."""
    bounds = {"first": family << 32, "last": family << 32 | 0xFFFF_FFFF}
    if rows(db, "count_search") != [(0,)]:
        rows(db, "outdate_search", family=family)
    rows(db, "drop_entries", family=family)
    rows(db, "drop_moves", family=family)
    rows(db, "drop_checkpoints", family=family)
    rows(db, "drop_segments", **bounds)
    rows(db, "drop_threads", family=family)
    rows(db, "drop_members", family=family)
    if family == 0:
        rows(db, "drop_settings")
