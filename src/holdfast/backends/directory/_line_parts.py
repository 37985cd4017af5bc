"""Rows of the index as parts of lines."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

import apsw
import msgspec
import orjson

from holdfast._values.records import PLAIN
from holdfast.backends.directory._blobs import as_json, elements_as_json
from holdfast.backends.directory._catalog import IndexedFile, rows
from holdfast.backends.directory._lines import (
    NOTHING,
    CheckpointPart,
    EntryPart,
    LineContent,
    LineEncoder,
    MarkPart,
    MovePart,
    ThreadPart,
)


class RowReader:
    """Reads single rows of the index as parts."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def thread(self, number: int, *, moved: bool = False) -> ThreadPart:
        """A thread as it is, or only what every save changes of it."""
        [row] = rows(self._db, "thread", key=number)
        number, name, head, changed, updated_at, kind, owner, agent, metadata = row[:9]
        part = ThreadPart(
            number=number, name=name, head=head, changed=changed, updated_at=updated_at
        )
        if moved:
            return part
        created_at, forked_thread, forked_checkpoint, deleted_at = row[9:]
        return msgspec.structs.replace(
            part,
            kind=kind,
            owner=owner,
            agent=agent,
            metadata=as_json(metadata) if metadata else NOTHING,
            created_at=created_at,
            forked_thread=forked_thread,
            forked_checkpoint=forked_checkpoint,
            deleted_at=deleted_at,
        )

    def checkpoint(self, seq: int) -> CheckpointPart:
        """A saved state, without its segments."""
        [row] = rows(self._db, "checkpoint", key=seq)
        seq, id_, thread, parent, step, saved_at, kind, label, tags, metadata = row[:10]
        size, digest, link, runs, manifest = row[10:]
        return CheckpointPart(
            seq=seq,
            id=id_,
            thread=thread,
            parent=parent,
            step=step,
            saved_at=saved_at,
            kind=kind,
            label=label,
            tags=orjson.loads(tags) if tags else [],
            metadata=as_json(metadata) if metadata else NOTHING,
            size=size,
            sha256=digest.hex(),
            link=None if link is None else link.hex(),
            runs=orjson.loads(runs),
            manifest=as_json(manifest),
        )

    def mark(self, seq: int) -> MarkPart:
        """The label and tags of a checkpoint, which can change."""
        found = self.checkpoint(seq)
        return MarkPart(seq=seq, label=found.label, tags=found.tags)

    def entries(self, seq: int) -> list[EntryPart]:
        """A journal entry; none if it has been replaced since."""
        return [
            EntryPart(
                seq=seq,
                thread=thread,
                checkpoint=checkpoint,
                key=key,
                value=as_json(value),
                recorded_at=recorded_at,
            )
            for seq, thread, checkpoint, key, value, recorded_at in rows(
                self._db, "journal", key=seq
            )
        ]

    def move(self, seq: int) -> MovePart:
        """A move of a thread's head, or any other change."""
        [(seq, thread, kind, source, target, at)] = rows(self._db, "move", key=seq)
        return MovePart(
            seq=seq,
            thread=thread,
            kind=kind,
            source=source,
            target=target,
            moved_at=at,
        )

    def setting(self, name: str) -> msgspec.Raw:
        """A fact about the whole store."""
        [(value,)] = rows(self._db, "setting_value", key=name)
        return as_json(value)

    def add_segment(self, key: int, part: LineContent) -> None:
        """Put a segment into a part."""
        [(packing, data)] = rows(self._db, "segment", key=key)
        assert packing == PLAIN, "a store that compresses is refused"
        part.segments[key & 0xFFFF_FFFF] = elements_as_json(data)


def whole_family(db: apsw.Connection, family: int) -> Iterator[LineContent]:
    """A family as it is now: its threads, then its changes in order.

    A segment is in the line of the first checkpoint that uses it.
    """
    source = RowReader(db)
    for (number,) in rows(db, "threads_of_family", family=family):
        yield LineContent(family=family, thread=source.thread(number))
    bounds = {"first": family << 32, "last": family << 32 | 0xFFFF_FFFF}
    unused = [key & 0xFFFF_FFFF for (key,) in rows(db, "segments_of_family", **bounds)]
    for what, seq in rows(db, "changes_of_family", family=family):
        if what == "journal":
            yield LineContent(family=family, journal=source.entries(seq))
        elif what == "move":
            yield LineContent(family=family, moves=[source.move(seq)])
        else:
            checkpoint = source.checkpoint(seq)
            part = LineContent(family=family, checkpoint=checkpoint)
            _add_segments(source, part, _taken(checkpoint.runs, unused))
            yield part
    if unused:
        part = LineContent(family=family)
        _add_segments(source, part, unused)
        yield part


def _taken(runs: Iterable[tuple[int, int]], unused: list[int]) -> Iterator[int]:
    """Remove from ``unused`` the numbers that runs use, and give them back."""
    for first, last in runs:
        start, end = bisect_left(unused, first), bisect_right(unused, last)
        yield from unused[start:end]
        del unused[start:end]


def _add_segments(source: RowReader, part: LineContent, numbers: Iterable[int]) -> None:
    for number in numbers:
        source.add_segment(part.family << 32 | number, part)


def is_compact(db: apsw.Connection, file: IndexedFile) -> bool:
    """True if no line of the file is outdated."""
    if file.family is None:
        return True
    writer = LineEncoder()
    for _ in writer.encode(whole_family(db, file.family)):
        pass
    return writer.tail == file.tail
