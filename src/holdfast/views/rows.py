"""The rows of a log: checkpoints with their last message, their size and their cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.records import last_messages as ends
from holdfast._messages.transcript import role_of
from holdfast._port import CheckpointKey
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.errors import Corrupt
from holdfast.views import growth as growth_views
from holdfast.views import outcome, usage
from holdfast.views.documents import iso
from holdfast.views.langgraph_steps import (
    is_bookkeeping,
    is_graph,
    nodes_of,
    step_text,
)
from holdfast.views.messages import one_line_text
from holdfast.views.showing import Showing

MOST_NAMES = 5


class RowMaker(msgspec.Struct, frozen=True):
    """The records for the rows of one page, read together."""

    parents: Mapping[str, Checkpoint]
    messages: Mapping[str, object]
    heads: Mapping[str, Sequence[str]]
    nodes: Mapping[str, Sequence[str]]
    showing: Showing

    def row(self, checkpoint: Checkpoint) -> dict[str, Any]:
        """One checkpoint."""
        parent = self.parents.get(checkpoint.parent or "")
        spent = usage.step_spent(checkpoint, parent)
        growth = growth_views.growth_of(checkpoint, parent)
        show = self.showing
        return {
            "id": checkpoint.id,
            "parent": checkpoint.parent,
            "thread": checkpoint.thread,
            "step": checkpoint.step,
            "seq": checkpoint.seq,
            "at": iso(checkpoint.saved_at),
            "kind": checkpoint.kind,
            "label": show.name(checkpoint.label),
            "tags": [show.line(tag) for tag in checkpoint.tags],
            "heads": list(self.heads.get(checkpoint.id, ())),
            "tokens": spent.tokens,
            "cost": spent.cost,
            "took_ms": usage.took_ms(checkpoint, parent),
            "size": checkpoint.size,
            "stored": growth.stored,
            **self._said(checkpoint, growth.changed),
        }

    def _said(self, checkpoint: Checkpoint, changed: Sequence[str]) -> dict[str, Any]:
        """The new last message; without one, the names of what changed."""
        last = self.messages.get(checkpoint.id)
        before = self.messages.get(checkpoint.parent or "")
        if last is None or last == before:
            error = outcome.is_error(checkpoint, None)
            text = self.showing.line(self._made(checkpoint, changed))
            return {"role": None, "text": text, "tool": None, "error": error}
        return {
            "role": role_of(last) or None,
            "text": self.showing.line(one_line_text(last)),
            "tool": outcome.tool_of(last),
            "error": outcome.is_error(checkpoint, last),
        }

    def _made(self, checkpoint: Checkpoint, changed: Sequence[str]) -> str:
        """The step of a graph, and the names of what changed."""
        if checkpoint.id not in self.nodes:
            return ", ".join(changed[:MOST_NAMES])
        step = step_text(checkpoint, self.nodes[checkpoint.id])
        names = [name for name in changed if not is_bookkeeping(name)]
        return f"{step}: {', '.join(names[:MOST_NAMES])}" if names else step


async def row_maker(
    context: Context,
    checkpoints: Sequence[Checkpoint],
    heads: Mapping[str, Sequence[str]],
    showing: Showing,
) -> RowMaker:
    """Read what the rows of some checkpoints need, in a few requests."""
    parents = await parents_of(context, checkpoints)
    every = {c.id: c for c in (*parents.values(), *checkpoints)}
    nodes: dict[str, list[str]] = {}
    try:
        found = await ends.last_messages(context, list(every.values()))
        nodes = await nodes_of(context, checkpoints, parents)
    except Corrupt:
        # The log of a damaged store is still useful without its messages.
        found = [None] * len(every)
    messages = dict(zip(every, found, strict=True))
    return RowMaker(parents, messages, heads, nodes, showing)


async def nodes_by_checkpoint(
    context: Context, checkpoints: Sequence[Checkpoint]
) -> dict[str, list[str]]:
    """The nodes that ran before each checkpoint of a graph, by its id."""
    graphs = [c for c in checkpoints if is_graph(c)]
    return await nodes_of(context, graphs, await parents_of(context, graphs))


async def parents_of(
    context: Context, checkpoints: Sequence[Checkpoint]
) -> dict[str, Checkpoint]:
    """The parents of some checkpoints, by id; those that were removed are missing."""
    known = {c.id: c for c in checkpoints}
    keys = [
        CheckpointKey(c.family, c.parent)
        for c in checkpoints
        if c.parent is not None and c.parent not in known
    ]
    read = await context.backend.read(list(dict.fromkeys(keys))) if keys else []
    return known | {c.id: c for c in read if c is not None}


def heads_of(threads: Iterable[ThreadRecord]) -> dict[str, list[str]]:
    """The names of the threads by the id of their head."""
    found: dict[str, list[str]] = {}
    for thread in threads:
        if thread.head is not None:
            found.setdefault(thread.head.id, []).append(thread.id)
    return found
