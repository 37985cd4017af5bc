"""Reading a damaged file: one consistent view, row by row where it must be."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import apsw

from holdfast._port import Rescued
from holdfast._values.records import Run, Segment
from holdfast.backends._sql.inspection import Rescue, sound_segments
from holdfast.backends._sql.rows import Row
from holdfast.backends.sqlite._rows import CODEC
from holdfast.backends.sqlite._statements import rows

CHUNK = 1000
# The statement that gives the largest key of the table that a rescue reads.
_LAST = {
    "rescue_threads": "last_thread",
    "rescue_checkpoints": "last_checkpoint",
    "rescue_entries": "last_entry",
    "rescue_moves": "last_move",
}


class SqliteInspection:
    """Ignores page checksums where rows have their own, so that one bad page costs only
    its bad rows. Rows of threads have none: they are trusted if their page is right."""

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
        self._rescue = Rescue(CODEC, self._fetch)
        if private:
            db.execute("begin")

    async def rescue(self) -> Rescued:
        return await self._rescue.records()

    async def segments(self, family: int, run: Run) -> list[Segment | None]:
        first, last = family << 32 | run.first, family << 32 | run.last
        found = self._rows_between("rescue_segments", first, last)
        return sound_segments(found, family, run)

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

    async def _fetch(self, query: str) -> Iterator[Row]:
        return self._all(query)

    def _all(self, query: str) -> Iterator[Row]:
        self._verify_pages(query == "rescue_threads")
        for first in range(1, self._last(query) + 1, CHUNK):
            yield from self._rows_between(query, first, first + CHUNK - 1)

    def _last(self, query: str) -> int:
        """The largest key of a table, or one at least as large."""
        name = _LAST[query]
        try:
            [(last,)] = rows(self._db, name)
        except apsw.Error as error:
            noun = name.removeprefix("last_")
            self._rescue.damage.append(f"the {noun} table: {error}")
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

    def _rows_between(self, query: str, first: int, last: int) -> list[Row]:
        """The rows of a range, halved wherever SQLite cannot read all of it."""
        try:
            return rows(self._db, query, first=first, last=last)
        except (apsw.Error, UnicodeDecodeError) as error:
            if first >= last:
                self._rescue.damage.append(f"{query} {first}: {error}")
                return []
        middle = (first + last) // 2
        lower = self._rows_between(query, first, middle)
        return lower + self._rows_between(query, middle + 1, last)
