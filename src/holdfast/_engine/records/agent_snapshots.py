"""The content of an agent's checkpoint, read without restoring it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.records import agents, conversations
from holdfast._engine.records.agent_checkpoints import (
    KIND,
    PREFIX,
    Snapshot,
    described,
    find,
    is_conversation,
    snapshot_of,
    threads_of_agent,
)
from holdfast._engine.threads import removal
from holdfast._engine.threads.listing import get
from holdfast._engine.threads.load import LoadedState, current, state_of
from holdfast._engine.threads.load import load_any as load_state
from holdfast._messages.repair import How
from holdfast._port import Matches, ThreadKey
from holdfast._values.graves import ERASED
from holdfast._values.records import Checkpoint, ThreadRecord, checked_name
from holdfast.agents import Agent, AgentCheckpoint, AgentSnapshot
from holdfast.conversations import Conversation
from holdfast.errors import Corrupt, NotFound

# How many checkpoints of one id are looked at: threads may use the same ones.
SAME = 1000


class Held(msgspec.Struct, frozen=True):
    """An agent's checkpoint, and each thread in it as it was: a pin under its name."""

    checkpoint: Checkpoint
    threads: dict[str, ThreadRecord]

    @property
    def agent(self) -> ThreadRecord:
        """The thread of the agent itself."""
        return self.threads[agents.PREFIX + self.checkpoint.thread.removeprefix(PREFIX)]

    @property
    def conversations(self) -> list[ThreadRecord]:
        """The threads of its conversations, last used first."""
        found = [t for name, t in self.threads.items() if is_conversation(name)]
        return sorted(found, key=lambda thread: -head_of(thread).seq)


async def get_checkpoint(context: Context, id_: str) -> AgentCheckpoint:
    """The checkpoint with an id, of whichever agent; `NotFound` if there is none."""
    matches = Matches(prefix=checked_name(id_, "checkpoint id"), limit=SAME)
    same = [match for match in await context.backend.scan(matches) if match.id == id_]
    found = [described(c) for c in same if await _is_of_agent(context, c)]
    if len(found) == 1:
        return found[0]
    agents_ = ", ".join(repr(checkpoint.agent_id) for checkpoint in found)
    raise NotFound(
        f"the agents {agents_} have a checkpoint {id_!r} each; name the agent too"
        if found
        else f"no agent has a checkpoint {id_!r}; see agents.checkpoints()",
        code="ambiguous" if found else NotFound.default_code,
        reference=id_,
    )


async def load_checkpoint(
    context: Context, agent: str, wanted: AgentCheckpoint | str
) -> AgentSnapshot:
    """The agent of a checkpoint, and its conversations without their messages."""

    async def attempt() -> AgentSnapshot:
        held = await _held(context, await find(context, agent, wanted))
        talks = [await conversations.summarized(context, t) for t in held.conversations]
        found: Agent = await agents.listed(context, held.agent)
        found.active_conversations = tuple(t.id for t in talks if not t.archived)
        return AgentSnapshot(
            checkpoint=described(held.checkpoint),
            agent=found,
            conversations=tuple(talks),
        )

    return await removal.until_current(attempt)


async def load_conversation(
    context: Context,
    agent: str,
    wanted: AgentCheckpoint | str,
    id_: str,
    *,
    repair: How | None,
) -> Conversation:
    """A conversation as a checkpoint of its agent holds it."""
    name = conversations.thread_of(id_)

    async def attempt() -> Conversation:
        held = await _held(context, await find(context, agent, wanted))
        thread = held.threads.get(name)
        if thread is None:
            text = f"the checkpoint has no conversation {id_!r}; see load_checkpoint()"
            raise NotFound(text, thread=name, reference=held.checkpoint.id)
        found = LoadedState(thread, head_of(thread), await _state(context, thread))
        return conversations.as_conversation(found, id_, repair)

    return await removal.until_current(attempt)


async def load_any(context: Context, wanted: Checkpoint | str) -> object:
    """The state of a checkpoint of any thread; of an agent's, the states it holds."""
    named = wanted if isinstance(wanted, Checkpoint) else await get(context, wanted)
    if not await _is_of_agent(context, named):
        return await load_state(context, named)

    async def attempt() -> object:
        held = await _held(context, await current(context, named))
        talks = {
            thread.id.removeprefix(conversations.PREFIX): await _state(context, thread)
            for thread in held.conversations
        }
        return {"agent": await _state(context, held.agent), "conversations": talks}

    return await removal.until_current(attempt)


async def _is_of_agent(context: Context, checkpoint: Checkpoint) -> bool:
    if not checkpoint.thread.startswith(PREFIX):
        return False
    thread = await context.find_thread(checkpoint.thread)
    return thread is not None and thread.kind == KIND


async def _held(context: Context, checkpoint: Checkpoint) -> Held:
    snapshot = await snapshot_of(context, checkpoint)
    agent = checkpoint.thread.removeprefix(PREFIX)
    pins = (await threads_of_agent(context, agent)).pins
    snapshot = await without_erased(context, snapshot, pins)
    return Held(
        checkpoint,
        {
            name: replace(pinned(pins, checkpoint, snapshot, name), id=name)
            for name in snapshot
        },
    )


async def _state(context: Context, thread: ThreadRecord) -> object:
    return await state_of(context, OpenedCheckpoint.of(head_of(thread)))


def head_of(thread: ThreadRecord) -> Checkpoint:
    """The head of a thread that was saved to."""
    assert thread.head is not None
    return thread.head


def pinned(
    pins: Mapping[str, ThreadRecord],
    checkpoint: Checkpoint,
    snapshot: Snapshot,
    name: str,
) -> ThreadRecord:
    """The pin of a thread in a checkpoint; `Corrupt` if it no longer holds it."""
    pin = pins.get(snapshot[name])
    if pin is None or not _is_intact(pin):
        what = f"the checkpoint {checkpoint.id!r} of an agent"
        raise Corrupt(what, f"it lost what it pinned of {name!r}")
    return pin


async def without_erased(
    context: Context, snapshot: dict[str, str], pins: Mapping[str, ThreadRecord]
) -> dict[str, str]:
    """The pins of a checkpoint but those of threads that were erased since."""
    missing = [name for name, pin in snapshot.items() if pin not in pins]
    if not missing:
        return snapshot
    found = await context.backend.read([ThreadKey(snapshot[n]) for n in missing])
    pairs = zip(missing, found, strict=True)
    erased = {name for name, pin in pairs if pin is not None and pin.kind == ERASED}
    return {name: pin for name, pin in snapshot.items() if name not in erased}


def _is_intact(pin: ThreadRecord) -> bool:
    """True if the head of a pin is still the checkpoint it was forked at."""
    head, origin = pin.head, pin.forked_from
    return head is not None and origin is not None and origin.checkpoint == head.id
