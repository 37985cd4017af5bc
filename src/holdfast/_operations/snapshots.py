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

from holdfast import _codec
from holdfast._backend import (
    Receipt,
    Start,
    Threads,
    Write,
)
from holdfast._cache import Known
from holdfast._manifest import decode_manifest
from holdfast._operations import agents, conversations, saving, upkeep
from holdfast._operations.context import Context
from holdfast._operations.drafts import AmendDraft, Amendment, ListsDraft, read_values
from holdfast._operations.lineage import HistoryQuery, history, resolve
from holdfast._records import (
    PIN,
    Checkpoint,
    Origin,
    Page,
    ThreadRecord,
    checked_name,
    encode_metadata,
)
from holdfast._reference import checked_id
from holdfast._rope import Rope, chain_of
from holdfast.agents import KINDS, MANUAL, AgentCheckpoint
from holdfast.errors import Conflict, Corrupt, NotFound, Unstorable

KIND = "checkpoints"
PREFIX = "checkpoints:"
CHUNK = 200
# A log of pins that is longer than twice what it amounts to, and this, is written anew.
SLACK = 64

Commit = Callable[[Write], Awaitable[Receipt]]
# What a checkpoint holds: the id of a checkpoint by the name of its thread.
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


def pin_of(thread: str, checkpoint: str) -> str:
    """The name of the pin of a thread's checkpoint, of a length that fits."""
    digest = sha256(f"{thread}\0{checkpoint}".encode()).hexdigest()
    return f"pin:{digest[:32]}"


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
    page = await context.backend.scan(Threads(agent=agent, every=True))
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

    async def attempt() -> AgentCheckpoint | None:
        belongings = await belongings_of(context, agent)
        if agents.thread_of(agent) not in belongings.living:
            raise agents.missing(agent)
        making = Making(context, belongings, wanted)
        if if_changed and await making.is_known():
            return None
        return await making.run()

    return await upkeep.until_current(attempt)


class Making:
    """A checkpoint being made; what it pins is settled, where it goes is not yet."""

    def __init__(
        self, context: Context, belongings: Belongings, wanted: Wanted
    ) -> None:
        self.context, self.belongings, self.wanted = context, belongings, wanted
        self.heads = belongings.heads(wanted.conversations)
        self.snapshot = {name: head.id for name, head in self.heads.items()}
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
        news = [[n, c] for n, c in self.snapshot.items() if old.get(n) != c]
        gone = [[name, None] for name in old if name not in self.snapshot]
        if len(log) + len(news) + len(gone) > 2 * len(self.snapshot) + SLACK:
            return Amendment({"pins": [[n, c] for n, c in self.snapshot.items()]})
        return Amendment({}, ListsDraft({"pins": [*gone, *news]}))

    async def pins(self) -> list[Write]:
        """Writes that pin what is not pinned yet, once it has been read."""
        writes: list[Write] = []
        for name, head in self.heads.items():
            pin = pin_of(name, head.id)
            if pin not in self.belongings.pins:
                await check(self.context, head)
                writes.append(self._pin(pin, self.belongings.living[name], head))
        return writes

    def _pin(self, pin: str, source: ThreadRecord, head: Checkpoint) -> Write:
        start = Start(
            kind=PIN,
            owner=source.owner,
            agent=self.belongings.agent,
            metadata=source.encoded_metadata,
            head=head,
            origin=Origin(source.id, head.id),
            anew=True,
        )
        at = self.context.clock()
        return Write(thread=pin, at=at, expect=None, start=start)

    async def _described(self) -> dict[str, object]:
        counted = [await self._messages(head) for head in self.heads.values()]
        found: dict[str, object] = {
            "conversations": len(conversations_among(self.heads)),
            "messages": sum(counted),
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
        counts = cast("dict[str, int]", values.get("counts") or {})
        return counts.get("messages", 0)


async def check(context: Context, checkpoint: Checkpoint) -> None:
    """Read a checkpoint's state and compare it with its digests; raises `Corrupt`."""
    known = Known(checkpoint, decode_manifest(checkpoint))
    for name, value in known.manifest.values.items():
        if not isinstance(value, Rope):
            _codec.decode(value)
            continue
        segments = await context.backend.segments(checkpoint.family, value.runs)
        parts = await context.packer.unpack(segments)
        if chain_of(sha256(part).digest() for part in parts) != value.chain:
            what = f"the value {name!r} of checkpoint {checkpoint.id!r}"
            raise Corrupt(what, "its digest does not match")


def conversations_among(threads: Iterable[str]) -> tuple[str, ...]:
    """The conversations among some threads, by id."""
    prefix = conversations.PREFIX
    return tuple(n.removeprefix(prefix) for n in threads if n.startswith(prefix))


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
    return {name: id_ for name, id_ in sorted(last.items()) if id_ is not None}


# --- finding --------------------------------------------------------------------------


async def find(
    context: Context, agent: str, wanted: AgentCheckpoint | str
) -> Checkpoint:
    """A checkpoint of an agent by record, id, unique beginning of one, or name."""
    thread = thread_of(agent)
    reference = wanted.id if isinstance(wanted, AgentCheckpoint) else wanted
    try:
        return await resolve(context, thread, reference)
    except NotFound as missing:
        if missing.code == "ambiguous":
            raise
    try:
        return await resolve(context, thread, f"label:{reference}")
    except NotFound:
        raise NotFound(
            f"agent {agent!r} has no checkpoint {reference!r};"
            " see agents.checkpoints()",
            thread=thread,
            reference=reference,
        ) from None


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
