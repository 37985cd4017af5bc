"""Numbers over the steps of a line, from manifests: no state is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from holdfast._engine.context import Context
from holdfast._values.records import Checkpoint
from holdfast.views.growth import growth_of, value_sizes
from holdfast.views.line import stretch, tip_and_length
from holdfast.views.rows import parents_of
from holdfast.views.showing import Showing
from holdfast.views.usage import step_spent, took_ms

# Of a longer line, only so many steps before its tip are shown.
MOST_STEPS = 4_000
CHUNK = 1_000
MOST_VALUES = 20


class ChartsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The line to a tip, in so many points at most."""

    thread: str
    tip: str | None = None
    buckets: Annotated[int, msgspec.Meta(ge=1, le=2_000)] = 200


class _Step(msgspec.Struct, frozen=True):
    """One checkpoint in the charts; ``sizes`` are those of its values."""

    checkpoint: Checkpoint
    tokens: int
    cost: float
    took_ms: int
    stored: int
    sizes: dict[str, int]


async def charts_document(
    context: Context, query: ChartsQuery, showing: Showing
) -> dict[str, Any]:
    """Series of equal length; a point of several steps has their sums.

    Sizes are those of its last step.
    """
    steps = await _steps(context, query)
    groups = _groups(steps, query.buckets)
    last = [group[-1] for group in groups]
    return {
        "thread": query.thread,
        "steps": [step.checkpoint.step for step in last],
        "ids": [step.checkpoint.id for step in last],
        "tokens": [sum(step.tokens for step in group) for group in groups],
        "cost": [sum(step.cost for step in group) for group in groups],
        "took_ms": [sum(step.took_ms for step in group) for group in groups],
        "logical": [step.checkpoint.size for step in last],
        "stored": [sum(step.stored for step in group) for group in groups],
        "values": _values(last, showing),
    }


async def _steps(context: Context, query: ChartsQuery) -> list[_Step]:
    tip, length = await tip_and_length(context, query.thread, query.tip)
    found: list[_Step] = []
    start, skip = tip, 0
    while len(found) < min(length, MOST_STEPS):
        page = await stretch(context, start, skip, CHUNK)
        parents = await parents_of(context, page)
        found += [_step(c, parents.get(c.parent or "")) for c in page]
        if len(page) < CHUNK:
            break
        start, skip = page[-1], 1
    return found[::-1]


def _step(checkpoint: Checkpoint, parent: Checkpoint | None) -> _Step:
    spent = step_spent(checkpoint, parent)
    return _Step(
        checkpoint,
        spent.tokens or 0,
        spent.cost or 0,
        took_ms(checkpoint, parent) or 0,
        growth_of(checkpoint, parent).stored,
        value_sizes(checkpoint),
    )


def _groups(steps: Sequence[_Step], most: int) -> list[Sequence[_Step]]:
    size = -(-len(steps) // most) or 1
    return [steps[first : first + size] for first in range(0, len(steps), size)]


def _values(steps: Sequence[_Step], showing: Showing) -> dict[str, list[int]]:
    """The sizes of the largest values over the steps."""
    largest: dict[str, int] = {}
    for step in steps:
        for name, size in step.sizes.items():
            largest[name] = max(largest.get(name, 0), size)
    names = sorted(largest, key=largest.__getitem__, reverse=True)[:MOST_VALUES]
    return {
        showing.line(name): [step.sizes.get(name, 0) for step in steps]
        for name in names
    }
