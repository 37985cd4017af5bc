"""Reading a store in which something may be wrong: it reports and goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from holdfast._port import Rescued
from holdfast._values.records import Checkpoint, Entry, Move, Run, Segment, ThreadRecord
from holdfast.backends.postgres import _rows
from holdfast.backends.postgres._arrays import int8s
from holdfast.backends.postgres._driver import Lost, broken
from holdfast.backends.postgres._session import Statements
from holdfast.errors import Corrupt

T = TypeVar("T")


class PostgresInspection:
    """A view of one moment: a transaction that lasts until it is closed."""

    def __init__(
        self, db: Statements, give_back: Callable[[], Awaitable[None]]
    ) -> None:
        self._db = db
        self._give_back = give_back
        self._damage: list[str] = []
        self._names: dict[int, str] = {}

    async def rescue(self) -> Rescued:
        self._damage.clear()
        threads = await self._rows("rescue_threads")
        self._names = {row[-2]: row[0] for row in threads}
        checkpoints = self._all(
            await self._rows("rescue_checkpoints"), self._checkpoint
        )
        entries = self._all(await self._rows("rescue_entries"), self._entry)
        heads = {checkpoint.seq: checkpoint for checkpoint in checkpoints}
        return Rescued(
            tuple(self._headed(row, heads) for row in threads),
            checkpoints,
            entries,
            tuple(Move(*row) for row in await self._rows("rescue_moves")),
            tuple(self._damage),
        )

    def _all(
        self, rows: list[_rows.Row], convert: Callable[[_rows.Row], T]
    ) -> tuple[T, ...]:
        found: list[T] = []
        for row in rows:
            try:
                found.append(convert(row))
            except (Corrupt, TypeError, ValueError) as error:
                self._damage.append(str(error))
        return tuple(found)

    def _headed(self, row: _rows.Row, heads: dict[int, Checkpoint]) -> ThreadRecord:
        name, head = row[0], row[-1]
        if head is not None and head not in heads:
            self._damage.append(f"the head of thread {name!r} is damaged or missing")
        found = None if head is None else heads.get(head)
        return _rows.to_headed_thread(row, found)

    def _checkpoint(self, row: _rows.Row) -> Checkpoint:
        has_parent, *columns = row
        found = replace(_rows.to_checkpoint(tuple(columns)), thread=self._name(row[-1]))
        return found if has_parent else replace(found, parent=None)

    def _entry(self, row: _rows.Row) -> Entry:
        return _rows.to_entry(row, self._name(row[-1]))

    def _name(self, number: int) -> str:
        return self._names.get(number, f"lost thread {number}")

    async def segments(self, family: int, run: Run) -> list[Segment | None]:
        values = {"firsts": int8s([run.first]), "lasts": int8s([run.last])}
        found: dict[int, Segment] = {}
        for row in await self._rows("segments", family=family, **values):
            try:
                [segment] = _rows.to_segments(family, [row])
            except Corrupt:
                continue
            found[segment.number] = segment
        return [found.get(number) for number in range(run.first, run.last + 1)]

    async def count_segments(self) -> int:
        [(count,)] = await self._rows("count_segments")
        return int(count)

    async def close(self) -> None:
        try:
            with contextlib.suppress(Lost):
                await self._db.run("rollback")
        finally:
            await self._give_back()

    async def _rows(self, name: str, /, **values: Any) -> list[_rows.Row]:
        try:
            return await self._db.rows(name, **values)
        except Lost as lost:
            raise broken(lost) from lost
