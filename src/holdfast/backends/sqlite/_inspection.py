"""Reading a damaged file in short views, row by row where it must be."""

from __future__ import annotations

import json
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Generator,
    Iterator,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager

import apsw
from msgspec.structs import replace

from holdfast._port import HeadId, Place, Portion, Rescued
from holdfast._values.records import Checkpoint, Entry, Run, Segment, ThreadRecord
from holdfast.backends._sql.inspection import (
    CHECKPOINT_THREAD,
    ENTRY_THREAD,
    Rescue,
    sound_segments,
)
from holdfast.backends._sql.rows import Row
from holdfast.backends.sqlite._connection import tells_of_damage, translation
from holdfast.backends.sqlite._rows import CODEC
from holdfast.backends.sqlite._statements import rows
from holdfast.errors import Corrupt

CHUNK = 1000
# Statements for the largest key of the table that a rescue reads, and for the next one.
_LAST = {
    "rescue_threads": "last_thread",
    "rescue_checkpoints": "last_checkpoint",
    "rescue_entries": "last_entry",
    "rescue_moves": "last_move",
}
_NEXT = {
    "rescue_threads": "next_thread",
    "rescue_checkpoints": "next_checkpoint",
    "rescue_entries": "next_entry",
    "rescue_moves": "next_move",
}


class SqliteInspection:
    """Ignores page checksums where rows have their own, so that one bad page costs only
    its bad rows. Rows of threads have none: they are trusted if their page is right.

    Each request is one short transaction: as long as one lasts, the log of a file that
    is written to cannot begin again.
    """

    def __init__(
        self,
        db: apsw.Connection,
        *,
        private: bool = False,
        checks_pages: bool = True,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._db = db
        self._private = private
        self._checks_pages = private and checks_pages
        self._on_close = on_close
        self._rescue = Rescue(CODEC, self._fetch)

    @asynccontextmanager
    async def moment(self) -> AsyncGenerator[None]:
        with self._view():
            yield

    @contextmanager
    def _view(self) -> Generator[None]:
        """A transaction, unless one is open or the database is in memory."""
        if not self._private or self._db.in_transaction:
            yield
            return
        self._db.execute("begin")
        try:
            yield
        finally:
            if self._db.in_transaction:  # SQLite ends it itself if a page is bad
                self._db.execute("rollback")

    def _rows(self, query: str, **values: int | str) -> list[Row]:
        """The rows of a query; only what is damaged is left out, as its callers do."""
        try:
            return rows(self._db, query, **values)
        except apsw.Error as error:
            if tells_of_damage(error):
                raise
            raise translation(error, self._db.filename) from error

    async def families(
        self, numbers: Sequence[int], *, heads_only: bool = False
    ) -> Rescued:
        with self._view():
            return await self._rescue.families(numbers, heads_only=heads_only)

    async def _fetch(self, query: str, numbers: Sequence[int]) -> list[Row]:
        self._verify_pages(True)
        try:
            return self._rows(query, families=json.dumps([*numbers]))
        except (apsw.Error, UnicodeDecodeError) as error:
            self._rescue.damage.append(f"{query}: {error}")
            return []

    async def threads(self, after: Place) -> Portion[ThreadRecord]:
        with self._view():
            self._verify_pages(True)
            first, last, end = self._range("rescue_threads", after)
            found = self._rows_between("rescue_threads", first, last)
            self._verify_pages(False)
            lost = self._rows_between("lost_heads", first, last)
        return self._rescue.portion(self._rescue.threads(found, lost), end)

    async def checkpoints(self, after: Place) -> Portion[Checkpoint]:
        with self._view():
            self._verify_pages(True)
            places = self._places(after)
            names = self._names({place.thread for place in places})
            self._verify_pages(False)
            rows_ = self._checkpoint_rows([place.number for place in places])
        found = self._rescue.checkpoints(rows_, names)
        # Not until nothing is left: others may save as fast as this is read.
        end = places[-1] if len(places) == CHUNK else None
        return self._rescue.portion(found, end)

    async def saves(self, after: Place) -> Portion[Checkpoint]:
        with self._view():
            self._verify_pages(False)
            first, last, end = self._range("rescue_checkpoints", after)
            found = self._rows_between("rescue_checkpoints", first, last)
            self._verify_pages(True)
            names = self._names({row[CHECKPOINT_THREAD] for row in found})
        return self._rescue.portion(self._rescue.checkpoints(found, names), end)

    async def heads(self, after: Place) -> Portion[HeadId]:
        with self._view():
            first, last, end = self._range("rescue_threads", after)
            found = self._rows_between("head_ids", first, last)
        portion = self._rescue.portion(tuple(HeadId(*row) for row in found), end)
        return replace(portion, damage=())

    async def entries(self, after: Place) -> Portion[Entry]:
        with self._view():
            first, last, end = self._range("rescue_entries", after)
            self._verify_pages(False)
            found = self._rows_between("rescue_entries", first, last)
            names = self._names({row[ENTRY_THREAD] for row in found})
        entries = self._rescue.entries(found, names)
        if end is None:
            for _ in self._all("rescue_moves"):
                pass  # it notes what cannot be read
        return self._rescue.portion(entries, end)

    async def headed_by(self, lost: Sequence[int]) -> list[str]:
        try:
            found = self._rows("headed_by", lost=json.dumps([*lost]))
        except apsw.Error:
            return []
        return [name for (name,) in found]

    async def checkpoint(self, family: int, id_: str) -> Checkpoint | None:
        try:
            [row] = self._rows("checkpoint_by_id", family=family, id=id_)
            return CODEC.checkpoint(row, orphaned=True)
        except (apsw.Error, Corrupt, TypeError, ValueError):
            return None

    def _range(self, query: str, after: Place) -> tuple[int, int, Place | None]:
        """The keys of the next portion of a table, and where the one after begins."""
        first = self._next(query, after.number)
        last = first + CHUNK - 1
        is_last = last >= self._last(query)
        return first, last, None if is_last else Place(number=last)

    def _next(self, query: str, after: int) -> int:
        """The next key of a table: the numbers of a file may be far apart."""
        try:
            [(found,)] = rows(self._db, _NEXT[query], after=after)
        except apsw.Error:
            return after + 1  # the reader of the row notes the damage
        return after + 1 if found is None else int(found)

    def _places(self, after: Place) -> list[Place]:
        """The next checkpoints by family and thread."""
        family, thread, number = after
        where = {"family": family, "thread": thread}
        try:
            keys = self._rows("keys_in_thread", after=number, limit=CHUNK, **where)
            left = CHUNK - len(keys)
            keys += self._rows("keys_behind_thread", limit=left, **where)
        except apsw.Error as error:
            self._rescue.damage.append(f"the checkpoints behind {after}: {error}")
            return []
        return [Place(*key) for key in keys]

    def _names(self, numbers: Collection[int]) -> list[Row]:
        """Their names, halved wherever SQLite cannot read all of them."""
        if not numbers:
            return []
        try:
            return self._rows("names_of", numbers=json.dumps([*numbers]))
        except (apsw.Error, UnicodeDecodeError) as error:
            if len(numbers) == 1:
                self._rescue.damage.append(f"the name of thread {numbers}: {error}")
                return []
        middle, parts = len(numbers) // 2, sorted(numbers)
        return self._names(parts[:middle]) + self._names(parts[middle:])

    def _checkpoint_rows(self, keys: list[int]) -> list[Row]:
        """Their rows, halved wherever SQLite cannot read all of them."""
        if not keys:
            return []
        try:
            return self._rows("checkpoints_by_seq", keys=json.dumps(keys))
        except (apsw.Error, UnicodeDecodeError) as error:
            if len(keys) == 1:
                self._rescue.damage.append(f"rescue_checkpoints {keys[0]}: {error}")
                self._rescue.lost += keys
                return []
        middle = len(keys) // 2
        lower = self._checkpoint_rows(keys[:middle])
        return lower + self._checkpoint_rows(keys[middle:])

    async def segments(
        self, wanted: Sequence[tuple[int, Run]]
    ) -> list[list[Segment | None]]:
        with self._view():
            return [self._segments(family, run) for family, run in wanted]

    def _segments(self, family: int, run: Run) -> list[Segment | None]:
        first, last = family << 32 | run.first, family << 32 | run.last
        found = self._rows_between("rescue_segments", first, last)
        return sound_segments(found, family, run)

    async def count_checkpoints(self) -> int:
        return self._count("count_checkpoints")

    async def count_saved(self, family: int, up_to: int) -> int:
        return self._count("count_saved", family=family, up_to=up_to)

    async def count_segments(self, families: Sequence[int]) -> list[int]:
        try:
            found = self._rows("count_segments", families=json.dumps([*families]))
        except apsw.Error:
            return [0] * len(families)
        return [count for (count,) in found]

    async def count_strays(self) -> int:
        return self._count("count_strays")

    def _count(self, query: str, **values: int) -> int:
        try:
            [(count,)] = self._rows(query, **values)
        except apsw.Error:
            return 0
        return int(count)

    async def close(self) -> None:
        if self._private:
            self._db.close()
        self._on_close()

    def _all(self, query: str) -> Iterator[Row]:
        self._verify_pages(query == "rescue_threads")
        last, end = 0, self._last(query)
        while last < end:
            first = self._next(query, last)
            last = first + CHUNK - 1
            yield from self._rows_between(query, first, last)

    def _last(self, query: str) -> int:
        """The largest key of a table, or one at least as large."""
        name = _LAST[query]
        try:
            [(last,)] = self._rows(name)
        except apsw.Error as error:
            noun = name.removeprefix("last_")
            self._rescue.damage.append(f"the {noun} table: {error}")
            return self._last_used_thread() if noun == "thread" else 0
        return last or 0

    def _last_used_thread(self) -> int:
        self._verify_pages(False)
        try:
            [(last,)] = self._rows("last_used_thread")
        except apsw.Error:
            return 0
        finally:
            self._verify_pages(True)
        return last or 0

    def _verify_pages(self, yes: bool) -> None:
        if self._checks_pages:
            self._db.execute(f"pragma checksum_verification = {int(yes)}")

    def _rows_between(self, query: str, first: int, last: int) -> list[Row]:
        """The rows of a range, halved wherever SQLite cannot read all of it."""
        try:
            return self._rows(query, first=first, last=last)
        except (apsw.Error, UnicodeDecodeError) as error:
            if first >= last:
                self._rescue.damage.append(f"{query} {first}: {error}")
                return []
        middle = (first + last) // 2
        lower = self._rows_between(query, first, middle)
        return lower + self._rows_between(query, middle + 1, last)
