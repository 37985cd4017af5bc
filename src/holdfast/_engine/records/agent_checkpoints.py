"""Checkpoints of an agent with all its conversations: making and finding them.

A checkpoint copies nothing. It is a save in the thread ``checkpoints:<agent>`` that
lists a *pin* for the agent and for each conversation. A pin is a fork at a head, to
which nothing is ever saved; it keeps that state through rewinds, pruning and deletion.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.records import agents, conversations
from holdfast._engine.threads import removal
from holdfast._engine.threads.drafts import (
    AmendDraft,
    Amendment,
    ListsDraft,
    read_values_of,
)
from holdfast._engine.threads.lineage import HistoryQuery, history, resolve
from holdfast._engine.threads.save import Options
from holdfast._engine.threads.save import save as save_thread
from holdfast._port import CheckpointKey, Marked, Receipt, Start, Threads, Write
from holdfast._values import codec
from holdfast._values.arguments import checked_text
from holdfast._values.manifest import decode_manifest
from holdfast._values.records import (
    PIN,
    UNSET,
    Checkpoint,
    Origin,
    Page,
    ThreadRecord,
    check_filter,
    checked_name,
    encode_metadata,
)
from holdfast._values.reference import checked_id
from holdfast._values.rope import Rope, chain_of
from holdfast.agents import KINDS, MANUAL, AgentCheckpoint
from holdfast.errors import Conflict, Corrupt, NotFound, Unstorable

KIND = "checkpoints"
PREFIX = "checkpoints:"
CHUNK = 200
# The list of pins is a log of changes. It is rewritten when it has more entries than
# twice the number of pins plus this.
SLACK = 64

Commit = Callable[[Write], Awaitable[Receipt]]
# The pins of a checkpoint: the name of the pin by the name of the pinned thread.
Snapshot = Mapping[str, str]


class CheckpointRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The name and description of a new checkpoint."""

    name: str | None = None
    kind: str = MANUAL
    description: str | None = None
    metadata: dict[str, Any] | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise Unstorable("kind", f"must be one of {', '.join(KINDS)}")
        if self.name is not None:
            checked_name(self.name, "name")
        if self.id is not None:
            checked_id(self.id)
        checked_text(self.description, "description")
        encode_metadata(self.metadata)


def thread_of(agent: str) -> str:
    """The name of the thread that keeps an agent's checkpoints."""
    return PREFIX + agents.checked_agent(agent)


def pin_of(thread: ThreadRecord, head: Checkpoint) -> str:
    """The name of the pin of a thread at its head; a digest, so that it is short."""
    # With the thread's number: its name and ids can be used again after deletion.
    place = f"{thread.number}\0{thread.id}\0{head.id}\0{thread.owner}\0"
    digest = sha256(place.encode() + thread.encoded_metadata).hexdigest()
    return f"{PIN}:{digest[:32]}"


# --- what there is --------------------------------------------------------------------


class AgentThreads(msgspec.Struct, frozen=True):
    """All threads of an agent at one moment, by name."""

    agent: str
    living: dict[str, ThreadRecord]
    pins: dict[str, ThreadRecord]

    def heads(self) -> dict[str, Checkpoint]:
        """The heads of the agent and of its conversations."""
        return {
            name: record.head
            for name, record in sorted(self.living.items())
            if record.head is not None
        }


async def threads_of_agent(context: Context, agent: str) -> AgentThreads:
    """The threads of an agent, read in one scan: all heads are of one moment."""
    query = Threads(agent=agents.checked_agent(agent), every=True)
    page = await context.backend.scan(query)
    records = [record for record in page if record.deleted_at is None]
    found = {r.id: r for r in records if r.kind in (agents.KIND, conversations.KIND)}
    pins = {r.id: r for r in records if r.kind == PIN}
    return AgentThreads(agent, found, pins)


# --- making ---------------------------------------------------------------------------


async def create(
    context: Context, agent: str, wanted: CheckpointRequest, *, if_changed: bool = False
) -> AgentCheckpoint | None:
    """Make a checkpoint of an agent; `Corrupt` if a state in it cannot be read.

    With ``if_changed`` nothing is saved, and ``None`` returned, if nothing changed
    since the newest checkpoint.
    """
    read: set[int] = set()

    async def attempt() -> AgentCheckpoint | None:
        threads = await threads_of_agent(context, agent)
        if agents.thread_of(agent) not in threads.living:
            raise agents.missing(agent)
        writer = AgentCheckpointWriter(context, threads, wanted, read)
        if if_changed and await writer.is_saved():
            return None
        return await writer.run()

    return await removal.until_current(attempt)


class AgentCheckpointWriter:
    """Makes a checkpoint of an agent's threads as they were read.

    ``read`` are the numbers of checkpoints that an earlier attempt has checked.
    """

    def __init__(
        self,
        context: Context,
        threads: AgentThreads,
        wanted: CheckpointRequest,
        read: set[int] | None = None,
    ) -> None:
        self.context, self.threads, self.wanted = context, threads, wanted
        self.read = set[int]() if read is None else read
        self.heads = threads.heads()
        self.snapshot = {
            name: pin_of(threads.living[name], head)
            for name, head in self.heads.items()
        }
        self.thread = thread_of(threads.agent)

    async def is_saved(self) -> bool:
        """True if the newest checkpoint has the same pins."""
        newest = await self.context.find_thread(self.thread)
        if newest is None or newest.head is None:
            return False
        return await snapshot_of(self.context, newest.head) == self.snapshot

    async def run(self) -> AgentCheckpoint:
        """Make the checkpoint in a transaction of its own."""
        pins = await self.pins()

        async def commit(write: Write) -> Receipt:
            return (await self.context.backend.commit([*pins, write]))[-1]

        return await self.save(commit)

    async def save(self, commit: Commit) -> AgentCheckpoint:
        """Save the checkpoint; ``commit`` commits it together with other changes."""

        async def together(write: Write) -> Receipt:
            try:
                return await commit(write)
            except Conflict as conflict:
                if conflict.thread == self.thread:
                    raise
                # One of the agent's threads has changed: repeat it all.
                raise Conflict(conflict.message, code="plan_stale") from conflict

        how = Options(
            label=self.wanted.name or self.wanted.kind,
            kind=self.wanted.kind,
            id=self.wanted.id,
            metadata=encode_metadata(await self._described()),
            start=Start(kind=KIND, agent=self.threads.agent, anew=True),
            commit=together,
        )
        draft = AmendDraft(("pins",), self._amend)
        return described(await save_thread(self.context, self.thread, draft, how))

    def _amend(self, before: dict[str, Any] | None) -> Amendment:
        log: list[list[str | None]] = (before or {}).get("pins", [])
        old = _last_pins(log)
        added = [[n, p] for n, p in self.snapshot.items() if old.get(n) != p]
        gone = [[name, None] for name in old if name not in self.snapshot]
        if len(log) + len(added) + len(gone) > 2 * len(self.snapshot) + SLACK:
            return Amendment({"pins": [[n, p] for n, p in self.snapshot.items()]})
        return Amendment({}, ListsDraft({"pins": [*gone, *added]}))

    async def pins(self) -> list[Write]:
        """The writes that create the pins; states without one are checked first."""
        for name, head in self.heads.items():
            if self.snapshot[name] not in self.threads.pins:
                await check(self.context, head, self.read)
        return [self._pin(name, head) for name, head in self.heads.items()]

    def _pin(self, name: str, head: Checkpoint) -> Write:
        source = self.threads.living[name]
        start = Start(
            kind=PIN,
            owner=source.owner,
            agent=self.threads.agent,
            metadata=source.encoded_metadata,
            head=head,
            origin=Origin(source.id, head.id),
            anew=True,
        )
        pin, at = self.snapshot[name], self.context.clock()
        there = self.threads.pins.get(pin)
        if there is not None:  # only make sure that it still exists
            return Write(thread=pin, at=at, expect=there.head)
        return Write(thread=pin, at=at, expect=UNSET, start=start)

    async def _described(self) -> dict[str, object]:
        talks = [h for name, h in self.heads.items() if is_conversation(name)]
        tallies = [await conversations.tally_at(self.context, head) for head in talks]
        found: dict[str, object] = {
            "conversations": len(talks),
            "messages": sum(tally.messages for tally in tallies),
            "size": sum(head.size for head in self.heads.values()),
        }
        if self.wanted.description is not None:
            found["description"] = self.wanted.description
        if self.wanted.metadata:
            found["metadata"] = self.wanted.metadata
        return found


async def check(context: Context, checkpoint: Checkpoint, read: set[int]) -> None:
    """Read a checkpoint's state and compare it with its digests; `Corrupt` if wrong."""
    if checkpoint.seq in read:
        return
    for name, value in decode_manifest(checkpoint).values.items():
        if not isinstance(value, Rope):
            codec.decode(value)
            continue
        segments = await context.backend.segments(checkpoint.family, value.runs)
        hashes = (sha256(segment.data).digest() for segment in segments)
        if chain_of(hashes) != value.chain:
            what = f"the value {name!r} of checkpoint {checkpoint.id!r}"
            raise Corrupt(what, "its digest does not match")
    read.add(checkpoint.seq)


def is_conversation(thread: str) -> bool:
    """True if the thread of an agent is a conversation."""
    return thread.startswith(conversations.PREFIX)


def conversations_among(threads: Iterable[str]) -> tuple[str, ...]:
    """The conversations among some threads, by id."""
    found = filter(is_conversation, threads)
    return tuple(name.removeprefix(conversations.PREFIX) for name in found)


def described(checkpoint: Checkpoint) -> AgentCheckpoint:
    """The agent's checkpoint that a save in its thread of checkpoints stands for."""
    about: dict[str, Any] = checkpoint.metadata
    return AgentCheckpoint(
        id=checkpoint.id,
        agent_id=checkpoint.thread.removeprefix(PREFIX),
        name=checkpoint.label or checkpoint.kind,
        kind=checkpoint.kind,
        description=about.get("description"),
        conversations=about.get("conversations", 0),
        messages=about.get("messages", 0),
        size=about.get("size", 0),
        created_at=checkpoint.saved_at,
        metadata=about.get("metadata", {}),
    )


async def snapshot_of(context: Context, checkpoint: Checkpoint) -> dict[str, str]:
    """The pins of a checkpoint."""
    values = await read_values_of(context, checkpoint, "pins")
    return _last_pins(values.get("pins", []))


def _last_pins(log: Iterable[Sequence[str | None]]) -> dict[str, str]:
    """The pins after all changes of a log, in the order of the threads' names."""
    last = dict(cast("Iterable[tuple[str, str | None]]", log))
    return {name: pin for name, pin in sorted(last.items()) if pin is not None}


# --- finding --------------------------------------------------------------------------


async def find(
    context: Context, agent: str, wanted: AgentCheckpoint | str
) -> Checkpoint:
    """A checkpoint of an agent by record, id, name, or unique beginning of an id."""
    found = await find_whole(context, agent, wanted)
    if found is not None:
        return found
    try:
        if isinstance(wanted, str):
            return await resolve(context, thread_of(agent), wanted)
    except NotFound as missing:
        if missing.code == "ambiguous":
            raise
    shown = wanted if isinstance(wanted, str) else wanted.id
    raise NotFound(
        f"agent {agent!r} has no checkpoint {shown!r}; see agents.checkpoints()",
        thread=thread_of(agent),
        reference=shown,
    )


async def find_whole(
    context: Context, agent: str, wanted: AgentCheckpoint | str
) -> Checkpoint | None:
    """A checkpoint by record, whole id or name; ``None`` if there is none."""
    thread = await context.find_thread(thread_of(agent))
    if thread is None:
        return None
    if isinstance(wanted, AgentCheckpoint):
        key = CheckpointKey(thread.family, wanted.id)
        return (await context.backend.read([key]))[0]
    name = checked_name(wanted, "checkpoint")
    [found] = await context.backend.read([CheckpointKey(thread.family, name)])
    if found is not None:
        return found
    labelled = Marked(family=thread.family, label=name, limit=1)
    return next(iter(await context.backend.scan(labelled)), None)


async def checkpoints(
    context: Context,
    agent: str,
    *,
    kind: str | None,
    limit: int | None,
    before: int | None,
) -> Page[AgentCheckpoint]:
    """An agent's checkpoints, newest first."""
    check_filter(kind, "kind")
    thread = thread_of(agent)
    if await context.find_thread(thread) is None:
        return Page(())
    found: list[AgentCheckpoint] = []
    while True:
        query = HistoryQuery(limit=limit, before=before)
        page = await history(context, thread, query)
        for checkpoint in page:
            if kind is None or checkpoint.kind == kind:
                found.append(described(checkpoint))
            if len(found) == limit:
                return Page(tuple(found), checkpoint.seq)
        before = page.cursor
        if before is None:
            return Page(tuple(found))
