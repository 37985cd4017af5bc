"""Checkpoints of an agent with all its conversations: made and found.

A checkpoint copies nothing. It is a save in the thread ``checkpoints:<agent>`` that
names the checkpoints of the agent and its conversations; each of those is held by a
pin, a fork that nobody writes to, so that it outlives rewinds, pruning and deletion.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

import msgspec

from holdfast._engine.cache import Known
from holdfast._engine.context import Context
from holdfast._engine.records import agents, conversations
from holdfast._engine.threads import removal
from holdfast._engine.threads import save as saving
from holdfast._engine.threads.drafts import (
    AmendDraft,
    Amendment,
    ListsDraft,
    read_values,
)
from holdfast._engine.threads.lineage import HistoryQuery, history, resolve
from holdfast._port import CheckpointKey, Marked, Receipt, Start, Threads, Write
from holdfast._values import codec
from holdfast._values.manifest import decode_manifest
from holdfast._values.records import (
    PIN,
    UNSET,
    Checkpoint,
    Origin,
    Page,
    ThreadRecord,
    checked_name,
    encode_metadata,
)
from holdfast._values.reference import checked_id
from holdfast._values.rope import Rope, chain_of
from holdfast.agents import KINDS, MANUAL, AgentCheckpoint
from holdfast.conversations import tally_of
from holdfast.errors import Conflict, Corrupt, NotFound, Unstorable

KIND = "checkpoints"
PREFIX = "checkpoints:"
CHUNK = 200
# A log of pins that is longer than twice what it amounts to, and this, is written anew.
SLACK = 64

Commit = Callable[[Write], Awaitable[Receipt]]
# What a checkpoint holds: the name of a pin by the name of the pinned thread.
Snapshot = Mapping[str, str]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """How a new checkpoint shall be.

    ``conversations`` are the ids of those it shall hold, all of them without.
    """

    name: str | None = None
    kind: str = MANUAL
    description: str | None = None
    metadata: dict[str, Any] | None = None
    id: str | None = None
    conversations: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise Unstorable("kind", f"must be one of {', '.join(KINDS)}")
        if self.name is not None:
            checked_name(self.name, "name")
        if self.id is not None:
            checked_id(self.id)
        encode_metadata(self.metadata)


def thread_of(agent: str) -> str:
    """The thread that keeps an agent's checkpoints."""
    return PREFIX + agents.checked_agent(agent)


def pin_of(thread: ThreadRecord, head: Checkpoint) -> str:
    """The name of the pin of a thread as it is, of a length that fits."""
    # Its number, since name and ids may be used again once it was deleted.
    place = f"{thread.number}\0{thread.id}\0{head.id}\0{thread.owner}\0"
    digest = sha256(place.encode() + thread.encoded_metadata).hexdigest()
    return f"{PIN}:{digest[:32]}"


# --- what there is --------------------------------------------------------------------


class Belongings(msgspec.Struct, frozen=True):
    """All threads of an agent at one moment, by name."""

    agent: str
    living: dict[str, ThreadRecord]
    pins: dict[str, ThreadRecord]

    def heads(self, only: Sequence[str] | None = None) -> dict[str, Checkpoint]:
        """The agent's head and those of its conversations."""
        names = None if only is None else set(map(conversations.thread_of, only))
        return {
            name: record.head
            for name, record in sorted(self.living.items())
            if record.head is not None
            and (record.kind == agents.KIND or names is None or name in names)
        }


async def belongings_of(context: Context, agent: str) -> Belongings:
    """An agent's threads."""
    # One scan, so that all heads are of one moment.
    query = Threads(agent=agents.checked_agent(agent), every=True)
    page = await context.backend.scan(query)
    records = [record for record in page if record.deleted_at is None]
    found = {r.id: r for r in records if r.kind in (agents.KIND, conversations.KIND)}
    pins = {r.id: r for r in records if r.kind == PIN}
    return Belongings(agent, found, pins)


# --- making ---------------------------------------------------------------------------


async def create(
    context: Context, agent: str, wanted: Wanted, *, if_changed: bool = False
) -> AgentCheckpoint | None:
    """Pin an agent and its conversations as they are; `Corrupt` if one is unreadable.

    With ``if_changed`` nothing is saved, and ``None`` returned, if everything is as
    the newest checkpoint has it.
    """
    read: set[int] = set()

    async def attempt() -> AgentCheckpoint | None:
        belongings = await belongings_of(context, agent)
        if agents.thread_of(agent) not in belongings.living:
            raise agents.missing(agent)
        making = Making(context, belongings, wanted, read)
        if if_changed and await making.is_known():
            return None
        return await making.run()

    return await removal.until_current(attempt)


class Making:
    """A checkpoint being made; what it pins is settled, where it goes is not yet.

    ``read`` are the checkpoints that an earlier attempt found to be readable.
    """

    def __init__(
        self,
        context: Context,
        belongings: Belongings,
        wanted: Wanted,
        read: set[int] | None = None,
    ) -> None:
        self.context, self.belongings, self.wanted = context, belongings, wanted
        self.read = set[int]() if read is None else read
        self.heads = belongings.heads(wanted.conversations)
        self.snapshot = {
            name: pin_of(belongings.living[name], head)
            for name, head in self.heads.items()
        }
        self.thread = thread_of(belongings.agent)

    async def is_known(self) -> bool:
        newest = await self.context.find_thread(self.thread)
        if newest is None or newest.head is None:
            return False
        return await snapshot_of(self.context, newest.head) == self.snapshot

    async def run(self) -> AgentCheckpoint:
        pins = await self.pins()

        async def commit(write: Write) -> Receipt:
            return (await self.context.backend.commit([*pins, write]))[-1]

        return await self.save(commit)

    async def save(self, commit: Commit) -> AgentCheckpoint:
        """Save the checkpoint; ``commit`` takes it to the backend with the rest."""

        async def together(write: Write) -> Receipt:
            try:
                return await commit(write)
            except Conflict as conflict:
                if conflict.thread == self.thread:
                    raise
                # Somebody changed one of the others: all has to be looked at again.
                raise Conflict(conflict.message, code="plan_stale") from conflict

        how = saving.Options(
            label=self.wanted.name or self.wanted.kind,
            kind=self.wanted.kind,
            id=self.wanted.id,
            metadata=encode_metadata(await self._described()),
            start=Start(kind=KIND, agent=self.belongings.agent, anew=True),
            commit=together,
        )
        draft = AmendDraft(("pins",), self._amend)
        return described(await saving.save(self.context, self.thread, draft, how))

    def _amend(self, before: dict[str, Any] | None) -> Amendment:
        log: list[list[str | None]] = (before or {}).get("pins", [])
        old = _folded(log)
        news = [[n, p] for n, p in self.snapshot.items() if old.get(n) != p]
        gone = [[name, None] for name in old if name not in self.snapshot]
        if len(log) + len(news) + len(gone) > 2 * len(self.snapshot) + SLACK:
            return Amendment({"pins": [[n, p] for n, p in self.snapshot.items()]})
        return Amendment({}, ListsDraft({"pins": [*gone, *news]}))

    async def pins(self) -> list[Write]:
        """Writes that pin everything, once what was not pinned yet has been read."""
        for name, head in self.heads.items():
            if self.snapshot[name] not in self.belongings.pins:
                await check(self.context, head, self.read)
        return [self._pin(name, head) for name, head in self.heads.items()]

    def _pin(self, name: str, head: Checkpoint) -> Write:
        source = self.belongings.living[name]
        start = Start(
            kind=PIN,
            owner=source.owner,
            agent=self.belongings.agent,
            metadata=source.encoded_metadata,
            head=head,
            origin=Origin(source.id, head.id),
            anew=True,
        )
        pin, at = self.snapshot[name], self.context.clock()
        there = self.belongings.pins.get(pin)
        if there is not None:  # it only has to be there still
            return Write(thread=pin, at=at, expect=there.head)
        return Write(thread=pin, at=at, expect=UNSET, start=start)

    async def _described(self) -> dict[str, object]:
        talks = [h for name, h in self.heads.items() if is_conversation(name)]
        found: dict[str, object] = {
            "conversations": len(talks),
            "messages": sum([await self._messages(head) for head in talks]),
            "size": sum(head.size for head in self.heads.values()),
        }
        if self.wanted.description is not None:
            found["description"] = self.wanted.description
        if self.wanted.metadata:
            found["metadata"] = self.wanted.metadata
        return found

    async def _messages(self, head: Checkpoint) -> int:
        known = Known(head, decode_manifest(head))
        values = await read_values(self.context, known, ("counts",))
        return tally_of(values.get("counts")).messages


async def check(context: Context, checkpoint: Checkpoint, read: set[int]) -> None:
    """Read a checkpoint's state and compare it with its digests; raises `Corrupt`."""
    if checkpoint.seq in read:
        return
    known = Known(checkpoint, decode_manifest(checkpoint))
    for name, value in known.manifest.values.items():
        if not isinstance(value, Rope):
            codec.decode(value)
            continue
        segments = await context.backend.segments(checkpoint.family, value.runs)
        parts = await context.packer.unpack(segments)
        if chain_of(sha256(part).digest() for part in parts) != value.chain:
            what = f"the value {name!r} of checkpoint {checkpoint.id!r}"
            raise Corrupt(what, "its digest does not match")
    read.add(checkpoint.seq)


def is_conversation(thread: str) -> bool:
    """Whether a thread of an agent is a conversation."""
    return thread.startswith(conversations.PREFIX)


def conversations_among(threads: Iterable[str]) -> tuple[str, ...]:
    """The conversations among some threads, by id."""
    found = filter(is_conversation, threads)
    return tuple(name.removeprefix(conversations.PREFIX) for name in found)


def described(checkpoint: Checkpoint) -> AgentCheckpoint:
    """A save of the thread of checkpoints as what it stands for."""
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
    """What a checkpoint holds."""
    known = Known(checkpoint, decode_manifest(checkpoint))
    values = cast("dict[str, Any]", await read_values(context, known, ("pins",)))
    return _folded(values.get("pins", []))


def _folded(log: Iterable[Sequence[str | None]]) -> dict[str, str]:
    """What a log amounts to: the last word on each thread, in order of its name."""
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
    """A checkpoint by record, id or name; ``None`` if there is none."""
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
