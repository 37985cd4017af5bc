"""Reading a damaged file: one consistent view, row by row where it must be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import apsw

from holdfast._port import Rescued
from holdfast._values.records import Checkpoint, Entry, Move, Run, Segment, ThreadRecord
from holdfast.backends.sqlite import _rows
from holdfast.backends.sqlite._write import rows
from holdfast.errors import Corrupt

T = TypeVar("T")

CHUNK = 1000


class SqliteInspection:
    """Passes over page checksums where rows have their own, so that one bad page costs
    only its bad rows; rows of threads have none, and are believed with their page."""

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
        self._names: dict[int, str] = {}
        if private:
            db.execute("begin")

    async def rescue(self) -> Rescued:
        self._damage.clear()
        self._verify_pages(True)
        threads = list(self._all("thread", tuple))
        self._names = {row[-2]: row[0] for row in threads}
        self._verify_pages(False)
        checkpoints = tuple(self._all("checkpoint", self._checkpoint))
        entries = tuple(self._all("entry", self._entry))
        heads = {checkpoint.seq: checkpoint for checkpoint in checkpoints}
        return Rescued(
            tuple(self._headed(row, heads) for row in threads),
            checkpoints,
            entries,
            tuple(self._all("move", lambda row: Move(*row))),
            tuple(self._damage),
        )

    def _headed(self, row: _rows.Row, heads: dict[int, Checkpoint]) -> ThreadRecord:
        name, head = row[0], row[-1]
        if head is not None and head not in heads:
            self._damage.append(f"the head of thread {name!r} is damaged or missing")
        found = None if head is None else heads.get(head)
        return _rows.to_headed_thread(row, found)

    def _checkpoint(self, row: _rows.Row) -> Checkpoint:
        return _rows.to_checkpoint(
            (*row[:2], self._name(row[-1]), *row[3:]), orphaned=True
        )

    def _entry(self, row: _rows.Row) -> Entry:
        return _rows.to_entry(row, self._name(row[-1]))

    def _name(self, number: int) -> str:
        return self._names.get(number, f"lost thread {number}")

    async def segments(self, family: int, run: Run) -> list[Segment | None]:
        found: dict[int, Segment] = {}
        first, last = family << 32 | run.first, family << 32 | run.last
        for row in self._rows_between("rescue_segments", first, last):
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
        plural = {"entry": "entries"}
        for first in range(1, self._last(noun) + 1, CHUNK):
            query = f"rescue_{plural.get(noun, noun + 's')}"
            for row in self._rows_between(query, first, first + CHUNK - 1):
                try:
                    yield convert(row)
                except (Corrupt, TypeError, ValueError) as error:
                    self._damage.append(str(error))

    def _last(self, noun: str) -> int:
        """The largest key of a table, or one at least as large."""
        try:
            [(last,)] = rows(self._db, f"last_{noun}")
        except apsw.Error as error:
            self._damage.append(f"the {noun} table: {error}")
            return self._last_used_thread() if noun == "thread" else 0
        return last or 0

    def _last_used_thread(self) -> int:
        self._verify_pages(False)
        try:
            [(last,)] = rows(self._db, "last_used_thread")
        except apsw.Error:
            return 0
        finally:
            self._verify_pages(True)
        return last or 0

    def _verify_pages(self, yes: bool) -> None:
        if self._private:
            self._db.execute(f"pragma checksum_verification = {int(yes)}")

    def _rows_between(self, query: str, first: int, last: int) -> list[_rows.Row]:
        """The rows of a range, halved wherever SQLite cannot read all of it."""
        try:
            return rows(self._db, query, first=first, last=last)
        except (apsw.Error, UnicodeDecodeError) as error:
            if first >= last:
                self._damage.append(f"{query} {first}: {error}")
                return []
        middle = (first + last) // 2
        lower = self._rows_between(query, first, middle)
        return lower + self._rows_between(query, middle + 1, last)
