"""The line of a call in a graph, which may be inside of subgraphs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from holdfast.adapters.langgraph._call_site import task_of
from holdfast.adapters.langgraph._get import find_checkpoint, find_thread
from holdfast.adapters.langgraph._namespace import Namespace, digest
from holdfast.backends import Checkpoint
from holdfast.operations import Context
from holdfast.operations.effects import PlacedCall
from holdfast.operations.graphs import GraphLine, begins_after


class CallLine(GraphLine):
    """The line that a call is on, with an ``inner`` line for a call in a subgraph."""

    def __init__(
        self,
        family: int | None,
        head: Checkpoint | None,
        at_end: Collection[str],
        *,
        goes_on: bool = False,
        inner: InnerLine | None = None,
    ) -> None:
        super().__init__(family, head, at_end, goes_on=goes_on)
        self._inner = inner

    async def has(self, context: Context, call: PlacedCall) -> bool:
        if not await self.holds(context, call.checkpoint):
            return False
        inner = self._inner
        if inner is None or call.checkpoint != inner.around:
            return True
        return await inner.has_call(context, call.thread, call.key)


class InnerLine(msgspec.Struct, frozen=True, kw_only=True):
    """The line of a subgraph, while the graph around it is at one checkpoint.

    A subgraph may be run there several times from its beginning, as in a fork. The
    effects of its earlier runs are then left behind.
    """

    around: str
    thread: str
    namespace: Namespace
    checkpoint: str
    loaded: str | None
    seen: Collection[str]
    attempts: Mapping[str, Mapping[str, int]]

    async def has_call(self, context: Context, thread: str, key: str) -> bool:
        """True if a call at the same outer checkpoint is on the line, by its key."""
        _, *inner = key.partition(":")[0].split("/")
        if not inner:
            return True  # a call of the outer graph, beside this one
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
        if head is None or await begins_after(context, head, checkpoint):
            return False
        line = GraphLine(record.family, head, (), goes_on=not is_saved)
        return await line.holds(context, checkpoint)

    def _is_beside(self, task: str, ns: str) -> bool:
        """True if another subgraph runs beside this one, not in an earlier attempt."""
        ours, others = self.attempts[digest(self.namespace.ns)], self.attempts.get(ns)
        if others is None:
            return task != digest(task_of(self.namespace.ns))
        return all(ours[name] == others[name] for name in ours.keys() & others.keys())
