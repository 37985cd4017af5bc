"""Reading a damaged store: damage is noted, and all other records are read."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace

from holdfast._port import Rescued
from holdfast._values.records import Run, Segment
from holdfast.backends._sql.inspection import Rescue, sound_segments
from holdfast.backends._sql.rows import Row
from holdfast.backends.postgres._arrays import int8s
from holdfast.backends.postgres._errors import Lost, broken
from holdfast.backends.postgres._rows import CODEC
from holdfast.backends.postgres._statements import Statements


class PostgresInspection:
    """A view of one moment: a transaction that lasts until it is closed."""

    def __init__(
        self, db: Statements, give_back: Callable[[], Awaitable[None]]
    ) -> None:
        self._db = db
        self._give_back = give_back
        self._rescue = Rescue(CODEC, self._rows)

    async def rescue(self) -> Rescued:
        found = await self._rescue.records()
        orphans = {seq for (seq,) in await self._rows("rescue_orphans")}
        checkpoints = tuple(
            replace(c, parent=None) if c.seq in orphans else c
            for c in found.checkpoints
        )
        return replace(found, checkpoints=checkpoints)

    async def segments(self, family: int, run: Run) -> list[Segment | None]:
        values = {"firsts": int8s([run.first]), "lasts": int8s([run.last])}
        found = await self._rows("segments", family=family, **values)
        return sound_segments(found, family, run)

    async def count_segments(self) -> int:
        [(count,)] = await self._rows("count_segments")
        return int(count)

    async def close(self) -> None:
        try:
            with contextlib.suppress(Lost):
                await self._db.run("rollback")
        finally:
            await self._give_back()

    async def _rows(self, name: str, /, **values: Any) -> list[Row]:
        try:
            return await self._db.rows(name, **values)
        except Lost as lost:
            raise broken(lost) from lost
