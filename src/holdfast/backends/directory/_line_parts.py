"""Rows of the index as parts of lines."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

import apsw
import msgspec
import orjson

from holdfast.backends.directory._blobs import shown, shown_elements
from holdfast.backends.directory._catalog import File, rows
from holdfast.backends.directory._lines import (
    NOTHING,
    CheckpointPart,
    EntryPart,
    MarkPart,
    MovePart,
    Part,
    ThreadPart,
    Writer,
)

PLAIN = 0


class Rows:
    """Reads single rows of the index as parts."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def thread(self, number: int, *, moved: bool = False) -> ThreadPart:
        """A thread as it is, or only what of it moves in every save."""
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
            metadata=shown(metadata) if metadata else NOTHING,
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
            metadata=shown(metadata) if metadata else NOTHING,
            size=size,
            sha256=digest.hex(),
            link=None if link is None else link.hex(),
            runs=orjson.loads(runs),
            manifest=shown(manifest),
        )

    def mark(self, seq: int) -> MarkPart:
        """What can change of a checkpoint."""
        found = self.checkpoint(seq)
        return MarkPart(seq=seq, label=found.label, tags=found.tags)

    def entries(self, seq: int) -> list[EntryPart]:
        """A journal entry, unless another has taken its place."""
        return [
            EntryPart(
                seq=seq,
                thread=thread,
                checkpoint=checkpoint,
                key=key,
                value=shown(value),
                recorded_at=recorded_at,
            )
            for seq, thread, checkpoint, key, value, recorded_at in rows(
                self._db, "journal", key=seq
            )
        ]

    def move(self, seq: int) -> MovePart:
        """Any other change."""
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
        return shown(value)

    def add_segment(self, key: int, part: Part) -> None:
        """Put a segment into a part."""
        [(packing, data)] = rows(self._db, "segment", key=key)
        assert packing == PLAIN, "a store that compresses is refused"
        part.segments[key & 0xFFFF_FFFF] = shown_elements(data)


def whole_family(db: apsw.Connection, family: int) -> Iterator[Part]:
    """A family as it is now: its threads, then all it consists of in order.

    A segment stands with the first checkpoint that uses it.
    """
    source = Rows(db)
    for (number,) in rows(db, "threads_of_family", family=family):
        yield Part(family=family, thread=source.thread(number))
    bounds = {"first": family << 32, "last": family << 32 | 0xFFFF_FFFF}
    unused = [key & 0xFFFF_FFFF for (key,) in rows(db, "segments_of_family", **bounds)]
    for what, seq in rows(db, "changes_of_family", family=family):
        if what == "journal":
            yield Part(family=family, journal=source.entries(seq))
        elif what == "move":
            yield Part(family=family, moves=[source.move(seq)])
        else:
            checkpoint = source.checkpoint(seq)
            part = Part(family=family, checkpoint=checkpoint)
            _add_segments(source, part, _taken(checkpoint.runs, unused))
            yield part
    if unused:
        part = Part(family=family)
        _add_segments(source, part, unused)
        yield part


def _taken(runs: Iterable[tuple[int, int]], unused: list[int]) -> Iterator[int]:
    """The numbers of the runs that nothing before has used; they are used now."""
    for first, last in runs:
        start, end = bisect_left(unused, first), bisect_right(unused, last)
        yield from unused[start:end]
        del unused[start:end]


def _add_segments(source: Rows, part: Part, numbers: Iterable[int]) -> None:
    for number in numbers:
        source.add_segment(part.family << 32 | number, part)


def is_compact(db: apsw.Connection, file: File) -> bool:
    """Whether a file says nothing that is over."""
    if file.family is None:
        return True
    writer = Writer()
    for _ in writer.encode(whole_family(db, file.family)):
        pass
    return writer.tail == file.tail
