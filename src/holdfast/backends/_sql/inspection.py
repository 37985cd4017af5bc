"""Reading a damaged store: damage is noted, and all other records are read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from holdfast._port import Place, Portion, Rescued
from holdfast._values.records import Checkpoint, Entry, Move, Run, Segment, ThreadRecord
from holdfast.backends._sql.rows import (
    CheckpointRow,
    EntryRow,
    Row,
    RowCodec,
    ThreadRow,
    to_segments,
    to_thread,
)
from holdfast.errors import Corrupt

T = TypeVar("T")

# Where rows of these tables say which thread they belong to.
CHECKPOINT_THREAD = CheckpointRow._fields.index("thread")
ENTRY_THREAD = EntryRow._fields.index("thread")
Fetch = Callable[[str], Awaitable[Iterable[Row]]]


class Rescue:
    """Turns the rows of all tables into records, and notes those that are damaged.

    ``fetch`` gives the rows of ``rescue_threads``, ``rescue_checkpoints``,
    ``rescue_entries`` and ``rescue_moves``, asked for in this order. A backend that
    finds damage itself adds it to ``damage``.
    """

    def __init__(self, codec: RowCodec, fetch: Fetch) -> None:
        self._codec = codec
        self._fetch = fetch
        self._names: dict[int, str] = {}
        self.damage: list[str] = []
        # The numbers of checkpoints that are damaged.
        self.lost: list[int] = []

    async def records(self) -> Rescued:
        """Every record that can still be read."""
        self.damage.clear()
        threads = [ThreadRow._make(r) for r in await self._fetch("rescue_threads")]
        self._names = {thread.number: thread.name for thread in threads}
        checkpoints = self._all(
            await self._fetch("rescue_checkpoints"), self._checkpoint
        )
        entries = self._all(await self._fetch("rescue_entries"), self._entry)
        heads = {checkpoint.seq: checkpoint for checkpoint in checkpoints}
        headed = tuple(self._headed(thread, heads) for thread in threads)
        moves = self._all(await self._fetch("rescue_moves"), lambda row: Move(*row))
        return Rescued(headed, checkpoints, entries, moves, tuple(self.damage))

    # --- portions ---------------------------------------------------------------------

    def threads(
        self, rows: Sequence[Row], lost_heads: Iterable[Row]
    ) -> tuple[ThreadRecord, ...]:
        """The threads of some rows; their heads are left out."""
        for (name,) in lost_heads:
            self.damage.append(f"the head of thread {name!r} is damaged or missing")
        return self._all(rows, lambda row: to_thread(row, None))

    def checkpoints(
        self, rows: Sequence[Row], names: Iterable[Row]
    ) -> tuple[Checkpoint, ...]:
        """The checkpoints of some rows; ``names`` are the numbers of their threads."""
        self._names = dict(names)
        found = self._all(rows, self._checkpoint)
        if len(found) < len(rows):
            sound = {checkpoint.seq for checkpoint in found}
            numbers = (CheckpointRow._make(row).seq for row in rows)
            self.lost += [number for number in numbers if number not in sound]
        return found

    def entries(self, rows: Sequence[Row], names: Iterable[Row]) -> tuple[Entry, ...]:
        """The journal entries of some rows."""
        self._names = dict(names)
        return self._all(rows, self._entry)

    def portion(self, records: tuple[T, ...], end: Place | None) -> Portion[T]:
        """Records with the damage that was noted since the portion before."""
        damage, lost = tuple(self.damage), tuple(self.lost)
        self.damage.clear()
        self.lost.clear()
        return Portion(records, damage, lost, end)

    # --- records ----------------------------------------------------------------------

    def _all(self, rows: Iterable[Row], convert: Callable[[Row], T]) -> tuple[T, ...]:
        found: list[T] = []
        for row in rows:
            try:
                found.append(convert(row))
            except (Corrupt, TypeError, ValueError) as error:
                self.damage.append(str(error))
        return tuple(found)

    def _headed(self, row: ThreadRow, heads: dict[int, Checkpoint]) -> ThreadRecord:
        if row.head is None:
            return to_thread(row, None)
        if row.head not in heads:
            text = f"the head of thread {row.name!r} is damaged or missing"
            self.damage.append(text)
        return to_thread(row, heads.get(row.head))

    def _checkpoint(self, row: Row) -> Checkpoint:
        # Renamed before the checksum is looked at: an error then says which thread.
        c = CheckpointRow._make(row)
        name = self._name(c.thread)
        return self._codec.checkpoint(c._replace(thread_name=name), orphaned=True)

    def _entry(self, row: Row) -> Entry:
        return self._codec.entry(row, self._name(EntryRow._make(row).thread))

    def _name(self, number: int) -> str:
        return self._names.get(number, f"lost thread {number}")


def sound_segments(rows: Iterable[Row], family: int, run: Run) -> list[Segment | None]:
    """What holds each number of a run, ``None`` where it is missing or damaged."""
    found: dict[int, Segment] = {}
    for row in rows:
        try:
            [segment] = to_segments([row], family)
        except (Corrupt, TypeError):
            continue
        first, last = max(segment.number, run.first), min(segment.last, run.last)
        found |= dict.fromkeys(range(first, last + 1), segment)
    return [found.get(number) for number in range(run.first, run.last + 1)]
