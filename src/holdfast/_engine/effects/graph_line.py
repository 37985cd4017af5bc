"""The line of a graph's thread.

An effect belongs to the checkpoint at which its task ran. Unlike a conversation, a
graph can leave a checkpoint without the results of its tasks: by ``update_state``, by a
new input that discards them, or by a replay. The effect is then left behind, though its
checkpoint is still on the line. The metadata of the checkpoints tell.
"""

from __future__ import annotations

from collections.abc import Collection

from holdfast._engine.context import Context
from holdfast._engine.effects.line import Line
from holdfast._messages.langgraph_form import FRAME, PARENT
from holdfast._port import Ancestors, CheckpointKey
from holdfast._values.manifest import decode_manifest
from holdfast._values.records import Checkpoint

# The source of a checkpoint that has the results of all tasks of its parent, of one
# that only copies its parent, and of one with a new input.
_AFTER_TASKS = "loop"
_COPY = "fork"
_INPUT = "input"


class GraphLine(Line):
    """The line that ends at a checkpoint of a graph.

    ``at_end`` are the anchors of the tasks at its end, by default those of the head,
    and of what it is a copy of. ``goes_on`` means that the line ends behind the head,
    at a checkpoint that is not saved.
    """

    def __init__(
        self,
        family: int | None,
        head: Checkpoint | None,
        at_end: Collection[str] | None = None,
        *,
        goes_on: bool = False,
    ) -> None:
        super().__init__(family, head)
        self._plain = Line(family, head)
        self._at_end = at_end
        self._goes_on = goes_on

    async def holds(self, context: Context, anchor: str | None) -> bool:
        if self._at_end is None:
            head = self.head
            self._at_end = {(await origin_of(context, head)).id} if head else ()
        return anchor in self._at_end or await super().holds(context, anchor)

    async def _find(self, context: Context, head: Checkpoint, anchor: str) -> bool:
        if anchor == head.id:
            return not self._goes_on or head is not self.head
        if not await super()._find(context, head, anchor):
            return False
        [found] = await context.backend.read([CheckpointKey(head.family, anchor)])
        return found is None or await _has_results(context, head, found)

    async def follows(self, context: Context, anchor: str) -> bool:
        # As on a plain line: a successor of a removed checkpoint has its effects, also
        # if the graph went on without the results of its tasks.
        return await self._plain.follows(context, anchor)


async def _has_results(context: Context, head: Checkpoint, start: Checkpoint) -> bool:
    """True if the line went on from the checkpoint with the results of its tasks."""
    for step in range(start.step + 1, head.step + 1):
        query = Ancestors(start=head, from_step=step, down_to_step=step)
        for following in await context.backend.scan(query):
            source = following.metadata.get("source", _AFTER_TASKS)
            if following.step == step and source != _COPY:
                return source == _AFTER_TASKS
    return False


async def begins_after(context: Context, head: Checkpoint, before: str) -> bool:
    """True if the graph got a new input after the checkpoint, and so began again."""
    [found] = await context.backend.read([CheckpointKey(head.family, before)])
    if found is None:
        return False
    query = Ancestors(start=head, down_to_step=found.step + 1)
    later = await context.backend.scan(query)
    return any(checkpoint.metadata.get("source") == _INPUT for checkpoint in later)


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
    apart = (FRAME, PARENT)
    return {name: value for name, value in values.items() if name not in apart}
