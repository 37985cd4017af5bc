"""Copying one thread to a new name within a store, with all that belongs to it.

Unlike a fork, the copy shares nothing with its source. It has a family of its own with
the same checkpoint ids, segments, marks and journal; pruning or deleting one of the two
does not affect the other.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import count

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.threads.journal import OF_THREAD
from holdfast._engine.threads.journal_keys import (
    ANCHOR,
    CALL,
    EFFECT,
    GRANT,
    MERGED,
    UNDO,
)
from holdfast._engine.threads.lineage import inherited
from holdfast._messages.loose import fields_of
from holdfast._port import (
    Ancestors,
    CheckpointEntries,
    Entries,
    Saves,
    Start,
    ThreadKey,
    Turn,
    Write,
)
from holdfast._port.removal import merged, subtract
from holdfast._values import codec
from holdfast._values.manifest import digest
from holdfast._values.records import UNSET, Checkpoint, Entry, Run, ThreadRecord
from holdfast.errors import Conflict

_OF_EFFECTS = (CALL, UNDO, EFFECT, ANCHOR, MERGED, GRANT)


async def duplicate(
    context: Context, source: ThreadRecord, target: str, start: Start
) -> None:
    """Copy a thread; a copy that was interrupted continues where it stopped."""
    checkpoints = await visible(context, source)
    copy = _ThreadCopy(context, source, target, start)
    await copy.find_copied({checkpoint.id for checkpoint in checkpoints})
    for checkpoint in checkpoints:
        await copy.add(checkpoint)
    await copy.add_effects()
    await copy.finish()


async def visible(context: Context, thread: ThreadRecord) -> list[Checkpoint]:
    """All checkpoints of a thread, oldest first, those inherited by a fork included."""
    own = Saves(family=thread.family, thread=thread.id, oldest_first=True)
    found = list(await context.backend.scan(own))
    above = await inherited(context, thread) if thread.forked_from else None
    if above is None:
        return found
    return [*reversed(await context.backend.scan(Ancestors(start=above))), *found]


class Journals:
    """The journals of the checkpoints that a thread can see, and of its origins.

    A fork sees the entries of the checkpoints before its fork point; at the fork point
    its own journal begins.
    """

    def __init__(self, context: Context, thread: ThreadRecord) -> None:
        self._context = context
        self._threads: list[ThreadRecord | None] = [thread]

    async def of(self, checkpoint: Checkpoint) -> ThreadRecord | None:
        """The thread whose journal has the entries of a checkpoint.

        ``None`` if the entries were deleted with their thread.
        """
        for depth in count():
            thread = await self._thread(depth)
            if thread is None:
                return None
            origin = thread.forked_from
            is_own = checkpoint.thread_number == thread.number
            if is_own or origin is None or origin.checkpoint == checkpoint.id:
                return thread if thread.deleted_at is None else None
        raise AssertionError  # the origins of a thread end

    async def of_each(
        self, checkpoints: Sequence[Checkpoint]
    ) -> list[ThreadRecord | None]:
        """The threads whose journals have the entries of checkpoints."""
        own = self._threads[0]
        if own is not None and own.forked_from is None and own.deleted_at is None:
            return [own] * len(checkpoints)
        return [await self.of(checkpoint) for checkpoint in checkpoints]

    async def _thread(self, depth: int) -> ThreadRecord | None:
        """The thread itself, its origin, the origin of that, and so on."""
        if depth == len(self._threads):
            below = self._threads[-1]
            assert below is not None
            assert below.forked_from is not None
            key = ThreadKey(below.forked_from.thread)
            [above] = await self._context.backend.read([key])
            is_related = above is not None and above.family == below.family
            self._threads.append(above if is_related else None)
        return self._threads[depth]


class _ThreadCopy:
    """The state of a copy in progress."""

    def __init__(
        self, context: Context, source: ThreadRecord, target: str, start: Start
    ) -> None:
        self.context, self.source, self.target = context, source, target
        self.start = start
        self.head: Checkpoint | None = None
        self.copied: dict[str, Checkpoint] = {}
        self.runs: list[Run] = []
        self.journals = Journals(context, source)

    async def find_copied(self, ids: Collection[str]) -> None:
        """Find what was copied before; refuse a thread with other checkpoints."""
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

    async def add_effects(self) -> None:
        """Copy the effects and the grants of the thread itself."""
        query = Entries(thread=self.source.id, checkpoint=OF_THREAD)
        entries = tuple(
            self._own(entry)
            for entry in await self.context.backend.scan(query)
            if entry.key.startswith(_OF_EFFECTS)
        )
        if entries:
            now = self.context.clock()
            write = Write(thread=self.target, at=now, expect=UNSET, entries=entries)
            await self.context.backend.commit([write])

    def _own(self, entry: Entry) -> Entry:
        """An entry for the copy, which has the same effects as its source."""
        value = fields_of(entry.value)
        moved = {
            name: {**place, "thread": self.target}
            for name in ("replays", "settles")
            if (place := fields_of(value.get(name))).get("thread") == self.source.id
        }
        data = codec.encode({**value, **moved}, "journal") if moved else entry.data
        return replace(entry, thread=self.target, data=data)

    async def finish(self) -> None:
        """Move the head of the copy to where its source has it."""
        head = self.copied[self.source.head.id] if self.source.head else None
        for turn in self._turns(head):
            await self.context.backend.commit([turn])

    def _note(self, checkpoint: Checkpoint) -> None:
        self.copied[checkpoint.id] = checkpoint
        self.runs = merged([*self.runs, *checkpoint.runs])

    def _turns(self, target: Checkpoint | None) -> Sequence[Write]:
        """The write that moves the head, if it is somewhere else."""
        if target is None or self.head is None or target.seq == self.head.seq:
            return ()
        at = self.context.clock()
        turn = Turn("rewind", target)
        return (Write(thread=self.target, at=at, expect=self.head, turn=turn),)

    def _draft(self, checkpoint: Checkpoint, parent: Checkpoint | None) -> Checkpoint:
        # A checkpoint whose parent was removed keeps the digest of that parent.
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
        journal = await self.journals.of(checkpoint)
        if journal is None:
            return ()
        query = CheckpointEntries(thread=journal, checkpoints=(checkpoint.id,))
        found = await self.context.backend.scan(query)
        return tuple(replace(entry, thread=self.target) for entry in found)
