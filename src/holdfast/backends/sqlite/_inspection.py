"""Reading a damaged file: one consistent view, row by row where it must be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import apsw

from holdfast._backend import Rescued
from holdfast._records import Checkpoint, Entry, Run, Segment
from holdfast.backends.sqlite import _rows
from holdfast.backends.sqlite._queries import QUERIES
from holdfast.backends.sqlite._writing import rows
from holdfast.errors import Corrupt

T = TypeVar("T")

CHUNK = 1000


class SqliteInspection:
    """Passes over page checksums, so that one bad page costs only its bad rows."""

    def __init__(
        self,
        db: apsw.Connection,
        *,
        private: bool = False,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._db = db
        self._private = private
        self._on_close = on_close
        self._damage: list[str] = []
        if private:
            db.execute("pragma checksum_verification = off")
            db.execute("begin")

    async def rescue(self) -> Rescued:
        self._damage.clear()
        threads = self._all("thread", _rows.to_thread)
        checkpoints = self._all("checkpoint", _orphan)
        entries = self._all("entry", _entry)
        return Rescued(
            tuple(threads), tuple(checkpoints), tuple(entries), tuple(self._damage)
        )

    async def segments(self, family: int, run: Run) -> list[Segment | None]:
        found: dict[int, Segment] = {}
        first, last = family << 32 | run.first, family << 32 | run.last
        for row in self._rows_between("segments", first, last):
            try:
                [segment] = _rows.to_segments([row])
            except (Corrupt, TypeError):
                continue
            found[segment.number] = segment
        return [found.get(number) for number in range(run.first, run.last + 1)]

    async def count_segments(self) -> int:
        try:
            [(count,)] = rows(self._db, "count_segments")
        except apsw.Error:
            return 0
        return int(count)

    async def close(self) -> None:
        if self._private:
            self._db.close()
        self._on_close()

    def _all(self, noun: str, convert: Callable[[_rows.Row], T]) -> Iterator[T]:
        plural = {"thread": "threads", "checkpoint": "checkpoints", "entry": "entries"}
        for first in range(1, self._last(noun) + 1, CHUNK):
            query = f"rescue_{plural[noun]}"
            for row in self._rows_between(query, first, first + CHUNK - 1):
                try:
                    yield convert(row)
                except (Corrupt, TypeError, ValueError) as error:
                    self._damage.append(str(error))

    def _last(self, noun: str) -> int:
        try:
            [(last,)] = rows(self._db, f"last_{noun}")
        except apsw.Error as error:
            self._damage.append(f"the {noun} table: {error}")
            return 0
        return last or 0

    def _rows_between(self, query: str, first: int, last: int) -> list[_rows.Row]:
        """The rows of a range, halved wherever SQLite cannot read all of it."""
        try:
            return self._db.execute(
                QUERIES[query], self._bounds(query, first, last)
            ).fetchall()
        except (apsw.Error, UnicodeDecodeError) as error:
            if first >= last:
                self._damage.append(f"{query} {first}: {error}")
                return []
        middle = (first + last) // 2
        lower = self._rows_between(query, first, middle)
        return lower + self._rows_between(query, middle + 1, last)

    def _bounds(
        self, query: str, first: int, last: int
    ) -> tuple[int, int] | dict[str, int]:
        return (first, last) if query == "segments" else {"first": first, "last": last}


def _orphan(row: _rows.Row) -> Checkpoint:
    return _rows.to_checkpoint(row, orphaned=True)


def _entry(row: _rows.Row) -> Entry:
    return _rows.to_entry(row[:-1], row[-1])
