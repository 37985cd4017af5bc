"""Reading a damaged store: damage is noted, and all other records are read."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

from holdfast._port import HeadId, Place, Portion, Rescued
from holdfast._values.records import Checkpoint, Entry, Run, Segment, ThreadRecord
from holdfast.backends._sql.inspection import (
    CHECKPOINT_THREAD,
    ENTRY_THREAD,
    Rescue,
    sound_segments,
)
from holdfast.backends._sql.reads import LATEST
from holdfast.backends._sql.rows import CheckpointRow, EntryRow, Row, ThreadRow
from holdfast.backends.postgres._errors import Lost, broken
from holdfast.backends.postgres._rows import CODEC, piece_values
from holdfast.backends.postgres._statements import Statements
from holdfast.errors import Corrupt

CHUNK = 1000
NUMBER = ThreadRow.__struct_fields__.index("number")
FAMILY, THREAD, SEQ = map(
    CheckpointRow.__struct_fields__.index, ("family", "thread", "seq")
)
ENTRY_SEQ = EntryRow.__struct_fields__.index("seq")


class PostgresInspection:
    """A view of one moment: a transaction that lasts until it is closed."""

    def __init__(
        self, db: Statements, give_back: Callable[[], Awaitable[None]]
    ) -> None:
        self._db = db
        self._give_back = give_back
        self._rescue = Rescue(CODEC, self._family_rows)

    @contextlib.asynccontextmanager
    async def moment(self) -> AsyncGenerator[None]:
        yield  # all of it is of one moment

    async def families(
        self, numbers: Sequence[int], *, heads_only: bool = False
    ) -> Rescued:
        return await self._rescue.families(numbers, heads_only=heads_only)

    async def _family_rows(self, name: str, numbers: Sequence[int]) -> list[Row]:
        return await self._rows(name, families=[*numbers])

    async def threads(self, after: Place) -> Portion[ThreadRecord]:
        values = {"after": after.number, "limit": CHUNK}
        found = await self._rows("portion_of_threads", **values)
        end = _end(found, lambda row: Place(number=row[NUMBER]))
        first, last = after.number + 1, end.number if end else LATEST
        lost = await self._rows("lost_heads", first=first, last=last)
        return self._rescue.portion(self._rescue.threads(found, lost), end)

    async def checkpoints(self, after: Place) -> Portion[Checkpoint]:
        values = {"family": after.family, "after": after.number, "limit": CHUNK}
        found = await self._rows("portion_of_checkpoints", **values)
        names = await self._names({row[CHECKPOINT_THREAD] for row in found})
        end = _end(found, lambda row: Place(row[FAMILY], row[THREAD], row[SEQ]))
        return self._rescue.portion(self._rescue.checkpoints(found, names), end)

    async def saves(self, after: Place) -> Portion[Checkpoint]:
        values = {"after": after.number, "limit": CHUNK}
        found = await self._rows("portion_of_saves", **values)
        names = await self._names({row[CHECKPOINT_THREAD] for row in found})
        end = _end(found, lambda row: Place(number=row[SEQ]))
        return self._rescue.portion(self._rescue.checkpoints(found, names), end)

    async def heads(self, after: Place) -> Portion[HeadId]:
        values = {"after": after.number, "limit": CHUNK}
        found = await self._rows("portion_of_heads", **values)
        end = _end(found, lambda row: Place(number=row[0]))
        return self._rescue.portion(tuple(HeadId(*row[1:]) for row in found), end)

    async def entries(self, after: Place) -> Portion[Entry]:
        values = {"after": after.number, "limit": CHUNK}
        found = await self._rows("portion_of_entries", **values)
        names = await self._names({row[ENTRY_THREAD] for row in found})
        end = _end(found, lambda row: Place(number=row[ENTRY_SEQ]))
        return self._rescue.portion(self._rescue.entries(found, names), end)

    async def headed_by(self, lost: Sequence[int]) -> list[str]:
        found = await self._rows("headed_by", lost=[*lost])
        return [name for (name,) in found]

    async def checkpoint(self, family: int, id_: str) -> Checkpoint | None:
        found = await self._rows("checkpoint_by_id", family=family, id=id_)
        try:
            return CODEC.checkpoint(found[0], orphaned=True) if found else None
        except (Corrupt, TypeError, ValueError):
            return None

    async def _names(self, numbers: set[int]) -> list[Row]:
        return await self._rows("names_of", numbers=[*numbers])

    async def segments(
        self, wanted: Sequence[tuple[int, Run]]
    ) -> list[list[Segment | None]]:
        found = await self._rows("pieces", **piece_values(wanted))
        rows: dict[int, list[Row]] = defaultdict(list)
        for place, *row in found:
            rows[place].append(tuple(row))
        return [
            sound_segments(rows[place], family, run)
            for place, (family, run) in enumerate(wanted)
        ]

    async def count_checkpoints(self) -> int:
        [(count,)] = await self._rows("count_checkpoints")
        return int(count)

    async def count_saved(self, family: int, up_to: int) -> int:
        [(count,)] = await self._rows("count_saved", family=family, up_to=up_to)
        return int(count)

    async def count_segments(self, families: Sequence[int]) -> list[int]:
        found = await self._rows("count_segments", families=[*families])
        return [count for (count,) in found]

    async def count_strays(self) -> int:
        [(count,)] = await self._rows("count_strays")
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


def _end(rows: list[Row], place: Callable[[Row], Place]) -> Place | None:
    """The place at which the next portion begins, ``None`` after the last rows."""
    return place(rows[-1]) if len(rows) == CHUNK else None
