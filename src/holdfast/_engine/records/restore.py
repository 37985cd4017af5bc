"""Restoring and deleting an agent's checkpoints, each in one transaction."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import asdict, replace

from holdfast._engine.context import Context
from holdfast._engine.effects.behind import entries_of, left_behind_by
from holdfast._engine.records import agents, conversations
from holdfast._engine.records.agent_checkpoints import (
    AgentCheckpointWriter,
    AgentThreads,
    CheckpointRequest,
    Snapshot,
    check,
    conversations_among,
    create,
    described,
    find,
    find_whole,
    snapshot_of,
    thread_of,
    threads_of_agent,
)
from holdfast._engine.records.agent_snapshots import head_of, pinned, without_erased
from holdfast._engine.threads import removal
from holdfast._engine.threads.pending import find_pending, unsaved_messages
from holdfast._port import (
    CheckpointKey,
    Details,
    Prune,
    Receipt,
    Saves,
    Start,
    Threads,
    Turn,
    Write,
)
from holdfast._port.removal import plan_removal
from holdfast._values.records import PIN, UNSET, Checkpoint, ThreadRecord
from holdfast.agents import (
    AUTOMATIC,
    RECOVERY,
    AgentCheckpoint,
    Restored,
    RestorePreview,
)
from holdfast.effects import Effect
from holdfast.errors import Conflict, HoldfastError, NotFound, Unstorable


async def restore(
    context: Context, agent: str, wanted: AgentCheckpoint | str
) -> Restored:
    """Put an agent and its conversations back to a checkpoint, all or nothing."""
    read: set[int] = set()

    async def attempt() -> Restored:
        return await (await _planned(context, agent, wanted, read)).run()

    return await removal.until_current(attempt)


async def preview(
    context: Context, agent: str, wanted: AgentCheckpoint | str
) -> RestorePreview:
    """The preview of `restore`, from the same plan; nothing is written."""
    read: set[int] = set()

    async def attempt() -> RestorePreview:
        return await (await _planned(context, agent, wanted, read)).preview()

    return await removal.until_current(attempt)


async def _planned(
    context: Context, agent: str, wanted: AgentCheckpoint | str, read: set[int]
) -> _Restore:
    """The restore of an agent as it is now; everything it needs can be read."""
    checkpoint = await find(context, agent, wanted)
    snapshot = await snapshot_of(context, checkpoint)
    threads = await threads_of_agent(context, agent)
    snapshot = await without_erased(context, snapshot, threads.pins)
    plan = _Restore(context, threads, checkpoint, snapshot, read)
    await plan.check()
    plan.find_changes()
    return plan


def recovery_name(restored: AgentCheckpoint) -> str:
    """The name of the recovery checkpoint that restoring a checkpoint makes."""
    name = f"before restoring {restored.name}"
    return name.encode()[:200].decode(errors="ignore")


class _Restore:
    """The changes that lead from an agent's threads as they are to a snapshot."""

    def __init__(
        self,
        context: Context,
        threads: AgentThreads,
        checkpoint: Checkpoint,
        snapshot: Snapshot,
        read: set[int],
    ) -> None:
        self.context, self.threads = context, threads
        self.checkpoint, self.snapshot, self.read = checkpoint, snapshot, read
        name = recovery_name(described(checkpoint))
        wanted = CheckpointRequest(kind=RECOVERY, name=name)
        self.writer = AgentCheckpointWriter(context, threads, wanted, read)
        # A thread without a head is in no checkpoint, not even in the recovery: what
        # a recorder got in it would be lost.
        self.removed = [
            record
            for name, record in threads.living.items()
            if name not in snapshot and record.head is not None
        ]
        self.dropped = [*self.removed]
        self.rewound: list[str] = []
        self.revived: list[str] = []
        # The threads whose heads move, with their targets.
        self.moved: list[tuple[ThreadRecord, Checkpoint]] = []
        # The writes that bring threads back, and those that create them again.
        self.turns: list[Write] = []
        self.starts: list[Write] = []
        self.pins: list[Write] = []

    async def check(self) -> None:
        """Check that everything can be read, before anything is changed."""
        for name in self.snapshot:
            await check(self.context, self._target(name), self.read)
            if name not in self.threads.living:
                await self._refuse_foreign(name)
        self.pins = await self.writer.pins()

    async def _refuse_foreign(self, name: str) -> None:
        record = await self.context.find_thread(name)
        if record is not None and record.agent != self.threads.agent:
            raise Conflict(
                f"thread {name!r} works for {record.agent!r} now; delete it first, or"
                " give a conversation back with conversations.update(id, agent=...)",
                code="foreign",
                thread=name,
            )

    def _pinned(self, name: str) -> ThreadRecord:
        return pinned(self.threads.pins, self.checkpoint, self.snapshot, name)

    def _target(self, name: str) -> Checkpoint:
        return head_of(self._pinned(name))

    async def preview(self) -> RestorePreview:
        """The changes that the restore makes."""
        effects = await self._left_behind()
        unsaved = await self._unsaved()
        own = agents.thread_of(self.threads.agent)
        return RestorePreview(
            checkpoint=described(self.checkpoint),
            agent_changed=own in (*self.rewound, *self.revived),
            rewound=conversations_among(self.rewound),
            revived=conversations_among(self.revived),
            removed=conversations_among(record.id for record in self.removed),
            unsaved=unsaved,
            effects=effects,
        )

    async def run(self) -> Restored:
        """Save the recovery checkpoint and make all changes, in one transaction."""
        told = await self.preview()
        effects = await self._moved_effects()

        async def commit(write: Write) -> Receipt:
            plan = Prune(
                at=self.context.clock(),
                first=(*self.pins, write, *self.turns),
                threads=tuple(self.dropped),
                then=(*self.starts, *effects),
            )
            await removal.carry_out(self.context, plan)
            assert write.checkpoint is not None
            return await self._receipt(write.checkpoint.id)

        recovery = await self.writer.save(commit)
        for thread in (*self.snapshot, *(record.id for record in self.dropped)):
            self.context.cache.take(thread)
        return Restored(recovery=recovery, **asdict(told))

    async def _left_behind(self) -> tuple[Effect, ...]:
        """The effects that the threads have now and will not have, oldest first."""
        moves: list[tuple[ThreadRecord, Checkpoint | None]] = [*self.moved]
        moves += [(record, None) for record in self.dropped]
        found = {
            effect.place: effect
            for record, target in moves
            for effect in await left_behind_by(self.context, record, target)
        }
        return tuple(sorted(found.values(), key=lambda effect: effect.seq))

    async def _unsaved(self) -> int:
        """The number of messages after these heads that no checkpoint has yet."""
        threads = [*(record for record, _ in self.moved), *self.dropped]
        pending = [await find_pending(self.context, record) for record in threads]
        return sum(len(unsaved_messages(found)[1]) for found in pending)

    async def _moved_effects(self) -> list[Write]:
        """Writes that take what was recorded to the pins, and back from them.

        A thread that is dropped may be revived. It must not repeat what it did, and has
        its messages that no checkpoint has yet.
        """
        writes: list[Write] = []
        pins = self.writer.snapshot
        for record in self.dropped:
            if record.id in pins:
                writes += await self._carried(record.id, pins[record.id])
        for name in self.revived:
            pin = self.snapshot[name]
            carried = await self._carried(pin, name)
            forgotten = tuple(e.key for write in carried for e in write.entries)
            writes += carried
            if forgotten:
                writes.append(self._write(pin, forget=forgotten))
        return writes

    async def _carried(self, source: str, target: str) -> list[Write]:
        entries = await entries_of(self.context, source)
        moved = tuple(replace(entry, thread=target) for entry in entries)
        return [self._write(target, entries=moved)] if moved else []

    def _write(self, thread: str, **changes: Any) -> Write:
        at = self.context.clock()
        return Write(thread=thread, at=at, expect=UNSET, **changes)

    async def _receipt(self, id_: str) -> Receipt:
        key = CheckpointKey(self.checkpoint.family, id_)
        [saved] = await self.context.backend.read([key])
        if saved is None:
            raise NotFound(f"checkpoint {id_!r} was removed meanwhile; restore again")
        return Receipt(saved.seq, saved.family, saved.thread_number)

    def find_changes(self) -> None:
        """Find the heads to move, the threads to create and the threads to drop.

        A thread whose pin is in another family was deleted and created again: it is
        dropped, and created from its pin.
        """
        for name in self.snapshot:
            record, target = self.threads.living.get(name), self._target(name)
            if record is not None and record.family == target.family:
                self.turns += self._turns(record, self._pinned(name))
                continue
            if record is not None:
                self.dropped.append(record)
            self.starts.append(self._revival(name))

    def _turns(self, record: ThreadRecord, pin: ThreadRecord) -> list[Write]:
        """Writes that bring a thread back to its pin, none if nothing changed."""
        writes: list[Write] = []
        name, at, head = record.id, self.context.clock(), pin.head
        if head is not None and (record.head is None or record.head.seq != head.seq):
            turn = Turn("rewind", head)
            writes.append(Write(thread=name, at=at, expect=record.head, turn=turn))
            self.moved.append((record, head))
        about = Details(pin.owner, pin.encoded_metadata)
        if about != Details(record.owner, record.encoded_metadata):
            writes.append(Write(thread=name, at=at, expect=UNSET, details=about))
        self.rewound += [name] if writes else []
        return writes

    def _revival(self, name: str) -> Write:
        self.revived.append(name)
        pin = self._pinned(name)
        is_agent = name.startswith(agents.PREFIX)
        start = Start(
            kind=agents.KIND if is_agent else conversations.KIND,
            owner=pin.owner,
            agent=self.threads.agent,
            metadata=pin.encoded_metadata,
            head=pin.head,
            # So that it can be rewound to before this checkpoint.
            origin=pin.forked_from,
            anew=True,
        )
        return Write(thread=name, at=self.context.clock(), expect=None, start=start)


# --- deleting -------------------------------------------------------------------------


async def delete(context: Context, agent: str, wanted: AgentCheckpoint | str) -> int:
    """Delete a checkpoint and the pins only it uses; 0 if it did not exist."""

    async def attempt() -> int:
        # A beginning of an id is not accepted: when the attempt is repeated, it could
        # mean another checkpoint.
        doomed = await find_whole(context, agent, wanted)
        return 0 if doomed is None else await _delete(context, agent, [doomed])

    return await removal.until_current(attempt)


async def create_and_tidy(
    context: Context, agent: str, wanted: CheckpointRequest, keep: int | None
) -> AgentCheckpoint:
    """Make a checkpoint, then keep only the newest of its kind."""
    check_keep(keep)
    made = await create(context, agent, wanted)
    assert made is not None
    await _tidy(context, made, keep)
    return made


async def take_automatic(context: Context, agent: str, keep: int | None) -> bool:
    """Make an automatic checkpoint if anything changed since the newest one."""
    made = await create(
        context, agent, CheckpointRequest(kind=AUTOMATIC), if_changed=True
    )
    if made is not None:
        await _tidy(context, made, keep)
    return made is not None


def check_keep(keep: object) -> None:
    """Refuse a number of checkpoints to keep that is below 1."""
    if keep is not None and (type(keep) is not int or keep < 1):
        raise Unstorable("keep", f"must be at least 1, or None for all, not {keep!r}")


async def _tidy(context: Context, made: AgentCheckpoint, keep: int | None) -> None:
    """Remove older checkpoints; a failure is a warning, since the new one is saved."""
    if keep is None:
        return
    try:
        await keep_newest(context, made.agent_id, made.kind, keep)
    except HoldfastError as error:
        text = f"checkpoint {made.id!r} was made, but removing older failed: {error}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


async def keep_newest(context: Context, agent: str, kind: str, count: int) -> int:
    """Delete all but the newest checkpoints of one kind; the other kinds stay."""

    async def attempt() -> int:
        thread = await context.find_thread(thread_of(agent))
        if thread is None:
            return 0
        saves = await context.backend.scan(Saves(family=thread.family))
        doomed = [c for c in saves if c.kind == kind][count:]
        return await _delete(context, agent, doomed) if doomed else 0

    return await removal.until_current(attempt)


async def _delete(context: Context, agent: str, doomed: Sequence[Checkpoint]) -> int:
    """Remove checkpoints and the pins that only they use, in one transaction."""
    # Read the pins before the checkpoints. A pin that is created or used afterwards is
    # then not in the list, or its `changed` differs and the prune is refused.
    page = await context.backend.scan(Threads(agent=agent, kind=PIN))
    thread = await context.find_thread(thread_of(agent))
    if thread is None:
        return 0
    query = Saves(family=thread.family, oldest_first=True)
    saves = await context.backend.scan(query)
    gone = {checkpoint.id for checkpoint in doomed}
    staying = [c for c in saves if c.id not in gone]
    needed = await _pins_of(context, staying)
    pins = [record for record in page if record.id not in needed]
    context.cache.take(thread.id)
    if not staying:
        await removal.drop(context, [thread, *pins])
    else:
        plan = plan_removal(thread.family, list(saves), doomed)
        first = _head_moved(context, thread, staying)
        await removal.drop(context, pins, [plan], (first,))
    return len(doomed)


def _head_moved(
    context: Context, thread: ThreadRecord, staying: Sequence[Checkpoint]
) -> Write:
    """Moves the head, if its checkpoint is removed.

    Otherwise it expects the head: a checkpoint made meanwhile may use one of the pins.
    """
    head = thread.head
    stays = head is not None and head.id in {c.id for c in staying}
    turn = None if stays else Turn("rewind", staying[-1])
    return Write(thread=thread.id, at=context.clock(), expect=head, turn=turn)


async def _pins_of(context: Context, checkpoints: Iterable[Checkpoint]) -> set[str]:
    return {
        pin
        for checkpoint in checkpoints
        for pin in (await snapshot_of(context, checkpoint)).values()
    }
