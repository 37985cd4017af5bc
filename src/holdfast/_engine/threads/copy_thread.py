"""Copying one thread to a new name within a store, with everything that it has.

Unlike a fork, the copy shares nothing with its source: it has a family of its own, with
the same checkpoint ids, segments, marks and journal, and either may be pruned or
deleted without the other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.threads.lineage import inherited
from holdfast._port import Ancestors, Entries, Saves, Start, ThreadKey, Turn, Write
from holdfast._port.removal import merged, subtract
from holdfast._values.manifest import digest
from holdfast._values.records import Checkpoint, Entry, Run, ThreadRecord
from holdfast.errors import Conflict


async def duplicate(
    context: Context, source: ThreadRecord, target: str, start: Start
) -> None:
    """Copy a thread; a copy that was interrupted goes on where it was."""
    checkpoints = await visible(context, source)
    copying = _Copying(context, source, target, start)
    await copying.find_what_is_there({checkpoint.id for checkpoint in checkpoints})
    for checkpoint in checkpoints:
        await copying.add(checkpoint)
    await copying.finish()


async def visible(context: Context, thread: ThreadRecord) -> list[Checkpoint]:
    """All checkpoints of a thread, what it began with first, oldest first."""
    own = Saves(family=thread.family, thread=thread.id, oldest_first=True)
    found = list(await context.backend.scan(own))
    above = await inherited(context, thread) if thread.forked_from else None
    if above is None:
        return found
    return [*reversed(await context.backend.scan(Ancestors(start=above))), *found]


async def journal_of(
    context: Context, thread: ThreadRecord, checkpoint: Checkpoint
) -> str | None:
    """The thread whose journal has the entries on a checkpoint that another one sees.

    What came before a fork is shared with it; where it starts, it starts anew. ``None``
    if they went with the thread that had them.
    """
    while True:
        origin = thread.forked_from
        is_own = checkpoint.thread_number == thread.number
        if is_own or origin is None or origin.checkpoint == checkpoint.id:
            return thread.id if thread.deleted_at is None else None
        [above] = await context.backend.read([ThreadKey(origin.thread)])
        if above is None or above.family != thread.family:
            return None
        thread = above


class _Copying:
    def __init__(
        self, context: Context, source: ThreadRecord, target: str, start: Start
    ) -> None:
        self.context, self.source, self.target = context, source, target
        self.start = start
        self.head: Checkpoint | None = None
        self.copied: dict[str, Checkpoint] = {}
        self.runs: list[Run] = []

    async def find_what_is_there(self, ids: Collection[str]) -> None:
        """Note what was copied before; refuses a thread that holds anything else."""
        record = await self.context.find_thread(self.target)
        if record is None:
            return
        self.head = record.head
        for checkpoint in await visible(self.context, record):
            self._note(checkpoint)
        if record.family == self.source.family or self.copied.keys() - set(ids):
            raise Conflict(
                f"thread {self.target!r} exists already; choose another name",
                code="thread_exists",
                thread=self.target,
            )

    async def add(self, checkpoint: Checkpoint) -> None:
        if checkpoint.id in self.copied:
            return
        parent = self.copied.get(checkpoint.parent or "") or self.head
        draft = self._draft(checkpoint, parent)
        write = Write(
            thread=self.target,
            at=self.context.clock(),
            expect=parent,
            start=None if parent else self.start,
            checkpoint=draft,
            segments=tuple(
                await self.context.backend.segments(
                    self.source.family, list(subtract(checkpoint.runs, self.runs))
                )
            ),
            entries=await self._entries(checkpoint),
        )
        *_, receipt = await self.context.backend.commit([*self._turns(parent), write])
        saved = replace(
            draft,
            seq=receipt.seq,
            family=receipt.family,
            thread_number=receipt.thread_number,
        )
        self._note(saved)
        self.head = saved

    async def finish(self) -> None:
        """See that the copy stands where its source does."""
        head = self.copied[self.source.head.id] if self.source.head else None
        for turn in self._turns(head):
            await self.context.backend.commit([turn])

    def _note(self, checkpoint: Checkpoint) -> None:
        self.copied[checkpoint.id] = checkpoint
        self.runs = merged([*self.runs, *checkpoint.runs])

    def _turns(self, target: Checkpoint | None) -> Sequence[Write]:
        """How the head gets where it has to be."""
        if target is None or self.head is None or target.seq == self.head.seq:
            return ()
        at = self.context.clock()
        turn = Turn("rewind", target)
        return (Write(thread=self.target, at=at, expect=self.head, turn=turn),)

    def _draft(self, checkpoint: Checkpoint, parent: Checkpoint | None) -> Checkpoint:
        # A checkpoint whose parent was removed keeps the link to it.
        above = checkpoint.link or (parent.sha256 if parent else b"")
        draft = replace(
            checkpoint,
            thread=self.target,
            parent=parent.id if parent else None,
            step=max(checkpoint.step, parent.step + 1 if parent else 1),
            seq=0,
            family=parent.family if parent else 0,
            thread_number=0,
        )
        return replace(draft, sha256=digest(draft, above))

    async def _entries(self, checkpoint: Checkpoint) -> tuple[Entry, ...]:
        journal = await journal_of(self.context, self.source, checkpoint)
        if journal is None:
            return ()
        query = Entries(thread=journal, checkpoint=checkpoint.id)
        found = await self.context.backend.scan(query)
        return tuple(replace(entry, thread=self.target) for entry in found)
