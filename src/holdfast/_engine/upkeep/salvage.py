"""Copying everything that can still be read out of a damaged store."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.threads import moves, removal
from holdfast._engine.threads.drafts import StateDraft
from holdfast._engine.threads.save import Options, save
from holdfast._engine.upkeep.verify import Problem
from holdfast._port import Inspection, Start, Write
from holdfast._values.manifest import decode_manifest
from holdfast._values.records import UNSET, Checkpoint, Entry, Origin, ThreadRecord
from holdfast._values.rope import Rope, read_body
from holdfast.errors import Corrupt, HoldfastError


class Salvaged(msgspec.Struct, frozen=True):
    """What could be copied out of a damaged store, and what was lost."""

    threads: int
    checkpoints: int
    journal_entries: int
    lost: tuple[Problem, ...]


async def salvage(context: Context, open_target: Callable[[], Context]) -> Salvaged:
    """Copy every checkpoint that can be read to a new store, with its id and time."""
    inspection = await context.backend.inspect()
    try:
        target = open_target()
        try:
            return await _Salvage(context, target, inspection).run()
        except HoldfastError as error:
            error.message += "; the new store is not complete: remove it, salvage again"
            raise
        finally:
            await target.backend.close()
    finally:
        await inspection.close()


class _Salvage:
    """A salvage in progress."""

    def __init__(
        self, context: Context, target: Context, inspection: Inspection
    ) -> None:
        self.context, self.target, self.inspection = context, target, inspection
        self.threads: dict[str, ThreadRecord] = {}
        # The copy of a checkpoint, or of its nearest ancestor that could be copied.
        self.copies: dict[str, Checkpoint] = {}
        self.heads: dict[str, Checkpoint] = {}
        self.lost: list[Problem] = []
        self.saved = self.recorded = 0

    async def run(self) -> Salvaged:
        rescued = await self.inspection.rescue()
        self.lost += map(Problem, rescued.damage)
        living = [t for t in rescued.threads if t.deleted_at is None]
        self.threads = {thread.id: thread for thread in living}
        for checkpoint in rescued.checkpoints:
            await self._copy(checkpoint)
        for thread in living:
            await self._restore_head(thread)
        for thread in rescued.threads:
            if thread.deleted_at is not None and thread.id not in self.threads:
                await self._delete_again(thread.id)
        for entry in rescued.entries:
            await self._record(entry)
        return Salvaged(len(self.heads), self.saved, self.recorded, tuple(self.lost))

    async def _copy(self, checkpoint: Checkpoint) -> None:
        above = self.copies.get(checkpoint.parent or "")
        try:
            draft = await self._draft(checkpoint)
        except HoldfastError as error:
            self.lost.append(Problem(str(error), checkpoint.thread, checkpoint.id))
            if above is not None:
                self.copies[checkpoint.id] = above
            return
        await self._go_to(checkpoint.thread, above)
        how = Options(
            label=checkpoint.label,
            tags=checkpoint.tags,
            metadata=checkpoint.encoded_metadata,
            kind=checkpoint.kind,
            id=checkpoint.id,
            start=self._start(checkpoint.thread),
        )
        then = replace(self.target, clock=lambda: checkpoint.saved_at)
        copied = await save(then, checkpoint.thread, draft, how)
        self.copies[checkpoint.id] = self.heads[checkpoint.thread] = copied
        self.saved += 1

    async def _draft(self, checkpoint: Checkpoint) -> StateDraft:
        manifest = decode_manifest(checkpoint)
        texts: dict[str, bytes] = {}
        for name, value in manifest.values.items():
            if isinstance(value, Rope):
                texts[name] = await self._text(checkpoint, name, value)
            else:
                texts[name] = value
        return StateDraft.of_texts(texts, is_mapping=manifest.is_mapping)

    async def _text(self, checkpoint: Checkpoint, name: str, rope: Rope) -> bytes:
        parts: list[bytes] = []
        for run in rope.runs:
            [segments] = await self.inspection.segments([(checkpoint.family, run)])
            whole = [segment for segment in segments if segment is not None]
            if len(whole) < len(segments):
                raise Corrupt(f"the value {name!r}", "some of its segments are lost")
            parts += (segment.data for segment in whole)
        return bytes(read_body(rope, parts).text)

    async def _go_to(self, thread: str, above: Checkpoint | None) -> None:
        """Make the parent of the next save the head of its thread."""
        head = self.heads.get(thread)
        if above is None or (head is not None and head.id == above.id):
            return
        if head is None:
            await self._fork(thread, above)
        else:
            await moves.turn(self.target, thread, "rewind", above)
        self.heads[thread] = above

    async def _fork(self, thread: str, above: Checkpoint) -> None:
        origin = Origin(above.thread, above.id)
        start = replace(self._start(thread), head=above, origin=origin)
        write = Write(thread=thread, at=above.saved_at, expect=None, start=start)
        await self.target.backend.commit([write])

    def _start(self, thread: str) -> Start:
        record = self.threads.get(thread)
        if record is None:
            return Start()
        return Start(record.kind, record.owner, record.agent, record.encoded_metadata)

    async def _restore_head(self, thread: ThreadRecord) -> None:
        """Move the head to where it was."""
        if thread.head is not None:
            await self._go_to(thread.id, self.copies.get(thread.head.id))

    async def _delete_again(self, name: str) -> None:
        """Delete a thread that was copied for its forks, if they need all of it."""
        thread = await self.target.find_thread(name)
        plans = await removal.plans_without(self.target, [thread] if thread else [])
        if [len(plan.checkpoints) for plan in plans] == [0]:
            await removal.delete_threads(self.target, [name])
            del self.heads[name]

    async def _record(self, entry: Entry) -> None:
        write = Write(
            thread=entry.thread,
            at=entry.recorded_at,
            expect=UNSET,
            start=self._start(entry.thread),
            entries=(entry,),
        )
        await self.target.backend.commit([write])
        self.recorded += 1
