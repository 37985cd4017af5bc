"""Reading a damaged store: damage is noted, and all other records are read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from holdfast._port import Place, Portion, Rescued
from holdfast._values.records import Checkpoint, Entry, Move, Run, Segment, ThreadRecord
from holdfast.backends._sql.rows import (
    HEAD_NUMBER,
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

NUMBER, NAME = map(ThreadRow.__struct_fields__.index, ("number", "name"))
CHECKPOINT_SEQ = CheckpointRow.__struct_fields__.index("seq")
# Where rows of these tables say which thread they belong to.
CHECKPOINT_THREAD = CheckpointRow.__struct_fields__.index("thread")
ENTRY_THREAD = EntryRow.__struct_fields__.index("thread")
Fetch = Callable[[str, Sequence[int]], Awaitable[Iterable[Row]]]


class Rescue:
    """Turns the rows of all tables into records, and notes those that are damaged.

    ``fetch`` gives the rows of ``rescue_family_…`` of some families: threads,
    checkpoints or heads, entries and moves, asked for in this order. A backend that
    finds damage itself adds it to ``damage``.
    """

    def __init__(self, codec: RowCodec, fetch: Fetch) -> None:
        self._codec = codec
        self._fetch = fetch
        self._names: dict[int, str] = {}
        self.damage: list[str] = []
        # The numbers of checkpoints that are damaged.
        self.lost: list[int] = []

    async def families(
        self, numbers: Sequence[int], *, heads_only: bool = False
    ) -> Rescued:
        """Every record of some families that can still be read."""
        self.damage.clear()
        threads = [*await self._rows("threads", numbers)]
        self._names = {row[NUMBER]: row[NAME] for row in threads}
        which = "heads" if heads_only else "checkpoints"
        saved = self._all(await self._rows(which, numbers), self._checkpoint)
        if not heads_only:
            self._note_orphans(saved)
        entries = self._all(await self._rows("entries", numbers), self._entry)
        heads = {checkpoint.seq: checkpoint for checkpoint in saved}
        headed = tuple(self._headed(row, heads) for row in threads)
        moves = self._all(await self._rows("moves", numbers), lambda row: Move(*row))
        return Rescued(headed, saved, entries, moves, tuple(self.damage))

    async def _rows(self, which: str, numbers: Sequence[int]) -> Iterable[Row]:
        return await self._fetch(f"rescue_family_{which}", numbers)

    def _note_orphans(self, saved: Sequence[Checkpoint]) -> None:
        known = {checkpoint.id for checkpoint in saved} | {None}
        self.damage += [
            f"the parent of checkpoint {checkpoint.id!r} is missing"
            for checkpoint in saved
            if checkpoint.parent not in known
        ]

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
            numbers = (row[CHECKPOINT_SEQ] for row in rows)
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

    def _headed(self, row: Row, heads: dict[int, Checkpoint]) -> ThreadRecord:
        head = row[HEAD_NUMBER]
        if head is None:
            return to_thread(row, None)
        if head not in heads:
            text = f"the head of thread {row[NAME]!r} is damaged or missing"
            self.damage.append(text)
        return to_thread(row, heads.get(head))

    def _checkpoint(self, row: Row) -> Checkpoint:
        # Renamed before the checksum is looked at: an error then says which thread.
        name = self._name(row[CHECKPOINT_THREAD])
        _old_name, *rest = row
        return self._codec.checkpoint((name, *rest), orphaned=True)

    def _entry(self, row: Row) -> Entry:
        return self._codec.entry(row, self._name(row[ENTRY_THREAD]))

    def _name(self, number: int) -> str:
        return self._names.get(number, f"lost thread {number}")


def sound_segments(rows: Iterable[Row], family: int, run: Run) -> list[Segment | None]:
    """The segment or block for each number of a run, ``None`` if missing or damaged."""
    found: dict[int, Segment] = {}
    for row in rows:
        try:
            [segment] = to_segments([row], family)
        except (Corrupt, TypeError):
            continue
        first, last = max(segment.number, run.first), min(segment.last, run.last)
        found |= dict.fromkeys(range(first, last + 1), segment)
    return [found.get(number) for number in range(run.first, run.last + 1)]
