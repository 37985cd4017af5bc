"""The line of a graph's thread, as effects need it.

An effect belongs to the checkpoint at which its task ran. Unlike a conversation, a
graph can leave a checkpoint without the results of its tasks: by ``update_state``, by a
new input that discards them, or by a replay. The effect is then left behind, though its
checkpoint is still on the line.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.effects.line import Line
from holdfast._port import Ancestors, CheckpointKey
from holdfast._values.manifest import decode_manifest
from holdfast._values.records import Checkpoint
from holdfast.adapters.langgraph._call_site import task_of
from holdfast.adapters.langgraph._get import find_checkpoint, find_thread
from holdfast.adapters.langgraph._namespace import FRAME, Namespace, digest

# The source of a checkpoint that has the results of all tasks of its parent, of one
# that only copies its parent, and of one with a new input.
_AFTER_TASKS = "loop"
_COPY = "fork"
_INPUT = "input"


class GraphLine(Line):
    """The line that a call is on.

    ``at_end`` are anchors at its end. ``goes_on`` means that the call is behind the
    head, at a checkpoint that is not saved. A call in a subgraph has an ``inner`` line.
    """

    def __init__(
        self,
        family: int | None,
        head: Checkpoint | None,
        at_end: Collection[str],
        *,
        goes_on: bool = False,
        inner: InnerLine | None = None,
    ) -> None:
        super().__init__(family, head)
        self._inner = inner
        self._plain = Line(family, head)
        self._at_end = at_end
        self._goes_on = goes_on

    async def holds(self, context: Context, anchor: str | None) -> bool:
        return anchor in self._at_end or await super().holds(context, anchor)

    async def has(
        self, context: Context, thread: str, key: str, anchor: str | None
    ) -> bool:
        if not await self.holds(context, anchor):
            return False
        inner = self._inner
        if inner is None or anchor != inner.around:
            return True
        return await inner.has_call(context, thread, key)

    async def _find(self, context: Context, head: Checkpoint, anchor: str) -> bool:
        if anchor == head.id:
            return not self._goes_on
        # As a plain line has it: what stands for a removed checkpoint has its effects,
        # also if the line left that without the results of its tasks.
        if not await self._plain.holds(context, anchor):
            return False
        [found] = await context.backend.read([CheckpointKey(head.family, anchor)])
        return found is None or await _has_results(context, head, found)


class InnerLine(msgspec.Struct, frozen=True, kw_only=True):
    """The line of a subgraph, while the graph around it is at one checkpoint.

    A subgraph may be run there several times from its beginning, as in a fork. What it
    did before is then left behind.
    """

    around: str
    thread: str
    namespace: Namespace
    checkpoint: str
    loaded: str | None
    seen: Collection[str]
    attempts: Mapping[str, Mapping[str, int]]

    async def has_call(self, context: Context, thread: str, key: str) -> bool:
        """Whether a call at the same outer checkpoint is on the line, by its key."""
        _, *inner = key.partition(":")[0].split("/")
        if not inner:
            return True  # of the outer graph, beside this one
        task, ns, checkpoint = inner
        if thread != self.thread:
            return False
        if ns != digest(self.namespace.ns):
            return self._is_beside(task, ns)
        is_new = checkpoint == self.checkpoint or checkpoint in self.seen
        return is_new or await self._holds(context, checkpoint)

    async def _holds(self, context: Context, checkpoint: str) -> bool:
        record = await find_thread(context, self.namespace)
        if record is None or record.deleted_at is not None:
            return False
        head = await find_checkpoint(context, record, self.checkpoint)
        is_saved = head is not None
        if head is None:
            head = await find_checkpoint(context, record, self.loaded)
        if head is None or await _begins_after(context, head, checkpoint):
            return False
        line = GraphLine(record.family, head, (), goes_on=not is_saved)
        return await line.holds(context, checkpoint)

    def _is_beside(self, task: str, ns: str) -> bool:
        """Whether another subgraph runs beside this one, not in an earlier attempt."""
        ours, others = self.attempts[digest(self.namespace.ns)], self.attempts.get(ns)
        if others is None:
            return task != digest(task_of(self.namespace.ns))
        return all(ours[name] == others[name] for name in ours.keys() & others.keys())


async def _begins_after(context: Context, head: Checkpoint, before: str) -> bool:
    """Whether a subgraph got a new input after a checkpoint, and so began again."""
    [found] = await context.backend.read([CheckpointKey(head.family, before)])
    if found is None:
        return False
    query = Ancestors(start=head, down_to_step=found.step + 1)
    later = await context.backend.scan(query)
    return any(checkpoint.metadata.get("source") == _INPUT for checkpoint in later)


async def _has_results(context: Context, head: Checkpoint, start: Checkpoint) -> bool:
    """Whether the line went on from a checkpoint with the results of its tasks."""
    for step in range(start.step + 1, head.step + 1):
        query = Ancestors(start=head, from_step=step, down_to_step=step)
        for following in await context.backend.scan(query):
            source = following.metadata.get("source", _AFTER_TASKS)
            if following.step == step and source != _COPY:
                return source == _AFTER_TASKS
    return False


async def origin_of(context: Context, checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint that LangGraph copied to replay it; mostly the same one."""
    while checkpoint.metadata.get("source") == _COPY and checkpoint.parent:
        key = CheckpointKey(checkpoint.family, checkpoint.parent)
        [above] = await context.backend.read([key])
        if above is None or _state(above) != _state(checkpoint):
            break
        checkpoint = above
    return checkpoint


def _state(checkpoint: Checkpoint) -> object:
    values = decode_manifest(checkpoint).values
    return {name: value for name, value in values.items() if name != FRAME}
