"""The writes of a transaction as they are stored in an encrypted store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from holdfast._port import Backend, Details, Mark, Saves, ThreadKey, Write
from holdfast._values.records import Checkpoint, ThreadRecord, Unset
from holdfast.errors import Corrupt, Unsupported
from holdfast.keys._move_ends import MoveEnds
from holdfast.keys._records import Family, Records


class EncodedWrites(NamedTuple):
    """Writes as they are stored, and the family of each that has content.

    ``begun`` are the places of writes that were added: they only begin a thread.
    """

    writes: list[Write]
    families: list[Family | None]
    begun: frozenset[int]


class WriteEncoder:
    """Encodes writes, and finds the families that they belong to.

    All contents of a family have the key of the owner whose thread began it.
    """

    def __init__(self, backend: Backend, records: Records) -> None:
        self.backend = backend
        self.records = records

    def encode_saves(self, writes: Sequence[Write]) -> list[Write] | None:
        """The most frequent writes: saves on known heads, and nothing else.

        They need nothing from the backend, and so none of the coroutines of `encode`.
        ``None`` for all other writes.
        """
        hidden: list[Write] = []
        records = self.records
        for write in writes:
            c, expect = write.checkpoint, write.expect
            if c is None or not isinstance(expect, Checkpoint) or _has_more(write):
                return None
            family = records.families.get(expect.family)
            if family is None:
                return None
            name = records.hide(write.thread, "thread")
            saved, segments = records.hide_save(c, write.segments, family)
            hidden.append(
                replace(write, thread=name, checkpoint=saved, segments=segments)
            )
        return hidden

    async def encode(
        self, writes: Sequence[Write], ends: MoveEnds | None = None
    ) -> EncodedWrites:
        """All other writes; ``ends`` are those after the writes that come before."""
        ends = ends or MoveEnds(self.backend, self.records)
        begun: dict[str, Family] = {}
        hidden: list[Write] = []
        families: list[Family | None] = []
        added: list[int] = []
        for write in writes:
            family = None
            if write.checkpoint or write.start or write.entries or write.details:
                known = len(begun)
                family = await self._family_of(write, begun)
                if len(begun) > known and _joins(write):
                    added.append(len(hidden))
                    families.append(family)
                    hidden.append(await self._hidden_write(_beginning(write), family))
            families.append(family)
            made = await self._hidden_write(write, family)
            hidden.append(await ends.proven(write, made))
        return EncodedWrites(hidden, families, frozenset(added))

    async def _hidden_write(self, write: Write, family: Family | None) -> Write:
        hide = self.records
        name = hide.hide(write.thread, "thread")
        if family is None:
            return replace(
                write,
                thread=name,
                marks=self._hidden_marks(write) if write.marks else (),
                forget=tuple([hide.hide(key, "key") for key in write.forget]),
            )
        details = write.details
        if details is not None:
            details = await self._hidden_details(write, family)
        checkpoint, segments = write.checkpoint, write.segments
        if checkpoint is not None:
            checkpoint, segments = hide.hide_save(checkpoint, segments, family)
        return replace(
            write,
            thread=name,
            start=write.start and hide.hide_start(write.start, write.thread, family),
            checkpoint=checkpoint,
            segments=segments,
            marks=self._hidden_marks(write) if write.marks else (),
            details=details,
            entries=tuple([hide.hide_entry(e, family.key) for e in write.entries])
            if write.entries  # most saves have none
            else (),
            forget=tuple([hide.hide(key, "key") for key in write.forget])
            if write.forget
            else (),
        )

    def _hidden_marks(self, write: Write) -> tuple[Mark, ...]:
        hide = self.records

        def hidden(label: str | Unset | None) -> str | Unset | None:
            return label if isinstance(label, Unset) else hide.hide_any(label, "label")

        return tuple(
            replace(
                mark,
                label=hidden(mark.label),
                expect=hidden(mark.expect),
                add=tuple([hide.hide(tag, "tag") for tag in mark.add]),
                remove=tuple([hide.hide(tag, "tag") for tag in mark.remove]),
            )
            for mark in write.marks
        )

    async def _hidden_details(self, write: Write, family: Family) -> Details:
        thread, known = await self._thread(write.thread)
        details = write.details
        assert details is not None
        if thread is None or known is None:
            return Details()  # the backend refuses the write
        if not isinstance(details.owner, Unset):
            self._check_owner(write.thread, details.owner, family)
        return self.records.hide_details(details, thread, family)

    def _check_owner(self, thread: str, owner: str | None, family: Family) -> None:
        """Refuse another owner: if the first one's key is destroyed, all is lost."""
        ring = self.records.ring
        if not (ring.is_of(family.key, None) or ring.is_of(family.key, owner)):
            raise Unsupported(
                f"thread {thread!r} is encrypted with the key of its owner; save its"
                " state to a new thread of the other owner",
                code="other_owner",
            )

    # --- families ---------------------------------------------------------------------

    async def _family_of(self, write: Write, begun: dict[str, Family]) -> Family:
        """The family of the thread of a write, which may be about to begin."""
        start = write.start
        if isinstance(write.expect, Checkpoint):
            return await self.family(write.expect.family)
        if start is not None and start.head is not None:
            family = await self.family(start.head.family)
            self._check_owner(write.thread, start.owner, family)
            return family
        if write.thread in begun:
            return begun[write.thread]
        _, known = await self._thread(write.thread)
        if known is not None:
            return known
        ring = self.records.ring
        key = await ring.of_owner(start.owner if start else None)
        begun[write.thread] = Family(key, ring.salt(write.thread))
        return begun[write.thread]

    async def family(self, number: int) -> Family:
        known = self.records.families.get(number)
        if known is not None:
            return known
        page = await self.backend.scan(Saves(family=number, limit=1))
        if not page:
            raise Corrupt(f"family {number}", "none of its checkpoints is left")
        show = self.records.open_checkpoint
        _, family = await self.records.loaded(lambda: show(page[0]))
        return family

    async def _thread(
        self, name: str
    ) -> tuple[ThreadRecord, Family | None] | tuple[None, None]:
        """A thread as it is stored now, and its family if it is not deleted."""
        key = ThreadKey(self.records.hide(name, "thread"))
        [found] = await self.backend.read([key])
        if found is None:
            return None, None
        return await self.records.loaded(lambda: self.records.open_thread(found))


def _joins(write: Write) -> bool:
    """True if a write that may begin a thread is also made if the thread exists by now.

    The other writer may have begun it for another owner, whose key the write needs
    then.
    """
    return write.start is not None and write.checkpoint is None and bool(write.entries)


def _beginning(write: Write) -> Write:
    """A write that only begins a thread, refused if there is one."""
    return Write(thread=write.thread, at=write.at, expect=None, start=write.start)


def _has_more(write: Write) -> bool:
    """True if a write of a checkpoint has anything else that is to be encrypted."""
    return bool(
        write.start or write.entries or write.details or write.marks or write.forget
    )
