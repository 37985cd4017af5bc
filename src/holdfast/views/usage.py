"""Tokens and cost of the model, from the usage that programs record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from holdfast._messages.loose import fields_of
from holdfast._values import codec
from holdfast._values.manifest import value_of
from holdfast._values.records import Checkpoint

# The value of a state in which a recorder keeps the sums of a run.
RUN = "run"
_TOTALS = ("total_tokens", "tokens", "total")
_PARTS = (
    ("input_tokens", "prompt_tokens", "input"),
    ("output_tokens", "completion_tokens", "output"),
)
_COSTS = ("cost", "total_cost", "cost_usd")
_DURATIONS = ("took_ms", "duration_ms", "latency_ms", "elapsed_ms")


class Spent(msgspec.Struct, frozen=True):
    """Tokens and cost, ``None`` where a program recorded none."""

    tokens: int | None = None
    cost: float | None = None

    def since(self, before: Spent) -> Spent:
        """The difference between two sums."""
        return Spent(
            _difference(self.tokens, before.tokens),
            _difference(self.cost, before.cost),
        )


NOTHING = Spent()


def spent_in(usage: Mapping[str, object]) -> Spent:
    """The numbers of a usage in the words of any provider."""
    total = _number(usage, _TOTALS)
    parts = [_number(usage, names) for names in _PARTS]
    if total is None and any(part is not None for part in parts):
        total = sum(part or 0 for part in parts)
    cost = _number(usage, _COSTS)
    return Spent(None if total is None else int(total), cost)


def spent_by(checkpoint: Checkpoint) -> Spent:
    """The usage of a checkpoint's own step, by its metadata."""
    metadata = checkpoint.metadata
    usage = fields_of(metadata.get("usage"))
    return spent_in({**metadata, **usage})


def spent_until(checkpoint: Checkpoint) -> Spent:
    """The sums that a recorder has saved; only if they stand in the manifest."""
    value = value_of(checkpoint, RUN)
    if not isinstance(value, bytes):
        return NOTHING
    return spent_in_run(codec.decode(value))


def spent_in_run(run: object) -> Spent:
    """The sums in the value that a recorder keeps."""
    return spent_in(fields_of(fields_of(run).get("usage")))


def step_spent(checkpoint: Checkpoint, parent: Checkpoint | None) -> Spent:
    """The usage of one step."""
    own = spent_by(checkpoint)
    if own != NOTHING:
        return own
    before = spent_until(parent) if parent else NOTHING
    return spent_until(checkpoint).since(before)


def took_ms(checkpoint: Checkpoint, parent: Checkpoint | None) -> int | None:
    """The recorded duration of a step, else the time since the checkpoint before it."""
    told = _number(checkpoint.metadata, _DURATIONS)
    if told is not None:
        return int(told)
    return None if parent is None else (checkpoint.saved_at - parent.saved_at) // 1000


def _number(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        found = fields.get(name)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return cast("float", found)
    return None


def _difference(new: Any, old: Any) -> Any:
    if new is None:
        return None
    return max(new - (old or 0), 0) or None
