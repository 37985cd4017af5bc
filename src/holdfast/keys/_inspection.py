"""The view of an encrypted store that may be damaged."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from holdfast._port import HeadId, Inspection, Place, Portion, Rescued
from holdfast._port.layer import InspectionLayer
from holdfast._values.records import Checkpoint, Entry, Run, Segment, ThreadRecord
from holdfast.errors import Corrupt
from holdfast.keys._records import FAMILIES, Family, Records

R = TypeVar("R")

ERASED = (
    "the key {} of an owner was destroyed: erase the owner again to remove what is left"
    " in this copy, or open it with the key file that has the secret"
)


class EncryptedInspection(InspectionLayer):
    """The view of `Backend.inspect`, decrypted.

    A record that cannot be decrypted is reported as damage, like one that cannot be
    read. A destroyed key of an owner is reported once, and the owner's records are left
    out.
    """

    def __init__(self, inspection: Inspection, records: Records) -> None:
        super().__init__(inspection)
        self._records = Records(records.ring, lenient=True)
        self._told: set[bytes] = set()

    async def families(
        self, numbers: Sequence[int], *, heads_only: bool = False
    ) -> Rescued:
        self._forget_families()
        found = await super().families(numbers, heads_only=heads_only)
        damage = [*found.damage]
        saved = await self._without_erased(found.checkpoints, damage)
        checkpoints = tuple([r async for r in self._shown(saved, damage)])
        heads = {checkpoint.seq: checkpoint for checkpoint in checkpoints}
        threads = await self._without_erased(found.threads, damage)
        entries = await self._without_erased(found.entries, damage)
        moves, wrong_moves = self._records.show_moves(found.moves)
        return Rescued(
            tuple([await self._thread(t, heads, damage) for t in threads]),
            checkpoints,
            tuple([r async for r in self._shown(entries, damage)]),
            tuple(moves),
            (*damage, *wrong_moves),
        )

    async def _thread(
        self, thread: ThreadRecord, heads: dict[int, Checkpoint], damage: list[str]
    ) -> ThreadRecord:
        head = thread.head and heads.get(thread.head.seq)
        if thread.head and not head:
            damage.append(f"the head of thread {thread.id!r} is damaged or missing")
        try:
            shown = await self._attempt(thread if head else replace(thread, head=None))
            return replace(shown, head=head)
        except Corrupt as error:
            damage.append(str(error))
            return replace(
                thread,
                id=self._records.show(thread.id, "thread"),
                kind="thread",
                owner=None,
                agent=None,
                forked_from=None,
                head=head,
                encoded_metadata=b"",
            )

    async def threads(self, after: Place) -> Portion[ThreadRecord]:
        return await self._portion(await super().threads(after))

    async def checkpoints(self, after: Place) -> Portion[Checkpoint]:
        self._forget_families()
        return await self._portion(await super().checkpoints(after))

    async def saves(self, after: Place) -> Portion[Checkpoint]:
        self._forget_families()
        return await self._portion(await super().saves(after))

    async def heads(self, after: Place) -> Portion[HeadId]:
        portion = await super().heads(after)
        show = self._records.show
        named = [h._replace(thread=show(h.thread, "thread")) for h in portion.records]
        return replace(portion, records=tuple(named))

    def _forget_families(self) -> None:
        """Forget known families if they are many: each portion asks about its own."""
        if len(self._records.families) > FAMILIES:
            self._records.families.clear()

    async def entries(self, after: Place) -> Portion[Entry]:
        return await self._portion(await super().entries(after))

    async def _portion(self, portion: Portion[R]) -> Portion[R]:
        damage = [*portion.damage]
        readable = await self._without_erased(portion.records, damage)
        records = tuple([r async for r in self._shown(readable, damage)])
        lost = _numbers(readable) - _numbers(records)
        return Portion(
            records, tuple(damage), (*portion.lost, *sorted(lost)), portion.end
        )

    async def headed_by(self, lost: Sequence[int]) -> list[str]:
        names = await super().headed_by(lost)
        return [self._records.show(name, "thread") for name in names]

    async def checkpoint(self, family: int, id_: str) -> Checkpoint | None:
        found = await super().checkpoint(family, id_)
        if found is None:
            return None
        return next(iter([r async for r in self._shown([found], [])]), None)

    async def segments(
        self, wanted: Sequence[tuple[int, Run]]
    ) -> list[list[Segment | None]]:
        found = await super().segments(wanted)
        return [
            await self._run(run, family)
            for (family, _), run in zip(wanted, found, strict=True)
        ]

    async def _run(
        self, run: Sequence[Segment | None], family: int
    ) -> list[Segment | None]:
        """The segments of a run; a block, which stands there repeatedly, only once."""
        shown: dict[int, Segment | None] = {}
        for segment in run:
            if segment is not None and segment.number not in shown:
                shown[segment.number] = await self._segment(segment, family)
        return [segment and shown[segment.number] for segment in run]

    async def _segment(self, segment: Segment, number: int) -> Segment | None:
        family = await self._family(number)
        if family is None:  # none of its checkpoints could be read
            return None
        show = self._records.show_segments
        try:
            return (await self._records.loaded(lambda: show([segment], family)))[0]
        except Corrupt:
            return None

    async def _family(self, number: int) -> Family | None:
        """A family by its number; it may have been met long ago."""
        if number not in self._records.families:
            found = await super().families([number], heads_only=True)
            async for _ in self._shown(found.checkpoints, []):
                pass  # showing a checkpoint is meeting its family
        return self._records.families.get(number)

    async def _without_erased(self, records: Iterable[R], damage: list[str]) -> list[R]:
        """The records but those whose owner's key was destroyed; tells it once."""
        found: list[R] = []
        for record in records:
            content = _content_of(record)
            id_ = await self._records.destroyed_key(content) if content else None
            if id_ is None:
                found.append(record)
            elif id_ not in self._told:
                self._told.add(id_)
                damage.append(ERASED.format(id_.hex()))
        return found

    async def _shown(self, records: Iterable[R], damage: list[str]) -> AsyncIterator[R]:
        for record in records:
            try:
                yield await self._attempt(record)
            except Corrupt as error:
                damage.append(str(error))

    async def _attempt(self, record: R) -> R:
        return await self._records.loaded(lambda: self._records.show_record(record))


def _numbers(records: Iterable[object]) -> set[int]:
    return {record.seq for record in records if isinstance(record, Checkpoint)}


def _content_of(record: object) -> bytes | None:
    """The part of a record that an owner's key encrypts, ``None`` without one."""
    if isinstance(record, Checkpoint):
        return record.manifest
    if isinstance(record, Entry):
        return record.data
    if isinstance(record, ThreadRecord) and record.deleted_at is None:
        return record.encoded_metadata
    return None
