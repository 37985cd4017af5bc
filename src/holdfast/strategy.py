"""Rules that say when a recorder saves: ``after_tool_batch() | every(5)``.

Pure: a strategy gets the events of an agent's loop and decides whether to save now.
"""

from __future__ import annotations

import math
from typing import Literal, Protocol, TypeAlias

import msgspec

from holdfast._values.records import checked_name
from holdfast.errors import Unstorable

__all__ = [
    "Event",
    "Strategy",
    "after_reply",
    "after_tool_batch",
    "after_tool_call",
    "before",
    "every",
    "every_seconds",
    "never",
]

Happening: TypeAlias = Literal["iteration", "llm_response", "tool_call", "tool_result"]
# The kind of the checkpoint to save.
Wish: TypeAlias = Literal["save", "pre_operation"]

SECOND = 1_000_000


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened in the loop, or with ``tool_call`` is about to happen.

    ``at`` is the time in microseconds and ``iteration`` the number of the turn of the
    loop; ``saved_at`` and ``saved_iteration`` are those of the last save, or of the
    beginning. ``open_calls`` counts the tool calls that have no result yet.
    """

    kind: Happening
    at: int
    iteration: int
    saved_at: int
    saved_iteration: int
    open_calls: int = 0
    tool: str | None = None


class Rule(Protocol):
    """One reason to save."""

    def wants(self, event: Event) -> Wish | None:
        """The kind of checkpoint to save now, if any."""
        ...


class Strategy(msgspec.Struct, frozen=True):
    """Reasons to save, any of which is enough; joined with ``|``."""

    rules: tuple[Rule, ...] = ()

    def wants(self, event: Event) -> Wish | None:
        """The kind of checkpoint to save now, ``None`` for no save."""
        wishes = {rule.wants(event) for rule in self.rules}
        if "pre_operation" in wishes:
            return "pre_operation"
        return "save" if "save" in wishes else None

    def __or__(self, other: object) -> Strategy:
        if not isinstance(other, Strategy):
            return NotImplemented
        return Strategy(tuple(dict.fromkeys(self.rules + other.rules)))

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.rules)) or "never()"


def after_tool_batch() -> Strategy:
    """Save when all calls of a reply have their results, or when it has no calls.

    The default: what it saves can always be sent to the model again.
    """
    return Strategy((_AfterToolBatch(),))


def after_tool_call() -> Strategy:
    """Save after the result of each tool call."""
    return Strategy((_After("tool_result"),))


def after_reply() -> Strategy:
    """Save after each reply of the model, before any tool it calls runs."""
    return Strategy((_After("llm_response"),))


def every(n: int) -> Strategy:
    """Save when the ``n``-th iteration since the last save begins."""
    if type(n) is not int or n < 1:
        raise Unstorable("n", f"must be at least 1 iteration, not {n!r}")
    return Strategy((_Every(n),))


def every_seconds(seconds: float) -> Strategy:
    """Save at the first event after so many seconds since the last save."""
    if type(seconds) not in {int, float} or not 0 < seconds < math.inf:
        raise Unstorable("seconds", f"must be a time above 0, not {seconds!r}")
    return Strategy((_EverySeconds(seconds),))


def before(*tools: str) -> Strategy:
    """Save a checkpoint of kind ``pre_operation`` before one of these tools runs."""
    if not tools:
        raise Unstorable("tools", "must be named; pass before('deploy')")
    return Strategy((_Before(tuple(checked_name(name, "tool") for name in tools)),))


def never() -> Strategy:
    """Save only when asked to."""
    return Strategy()


class _After(msgspec.Struct, frozen=True):
    kind: Happening

    def wants(self, event: Event) -> Wish | None:
        return "save" if event.kind == self.kind else None

    def __repr__(self) -> str:
        return "after_reply()" if self.kind == "llm_response" else "after_tool_call()"


class _AfterToolBatch(msgspec.Struct, frozen=True):
    def wants(self, event: Event) -> Wish | None:
        is_answer = event.kind in {"tool_result", "llm_response"}
        return "save" if is_answer and not event.open_calls else None

    def __repr__(self) -> str:
        return "after_tool_batch()"


class _Every(msgspec.Struct, frozen=True):
    n: int

    def wants(self, event: Event) -> Wish | None:
        passed = event.iteration - event.saved_iteration
        return "save" if event.kind == "iteration" and passed >= self.n else None

    def __repr__(self) -> str:
        return f"every({self.n})"


class _EverySeconds(msgspec.Struct, frozen=True):
    seconds: float

    def wants(self, event: Event) -> Wish | None:
        # After a clock was set back, saves must not stop.
        is_recent = 0 <= event.at - event.saved_at < self.seconds * SECOND
        return None if is_recent else "save"

    def __repr__(self) -> str:
        return f"every_seconds({self.seconds})"


class _Before(msgspec.Struct, frozen=True):
    tools: tuple[str, ...]

    def wants(self, event: Event) -> Wish | None:
        is_named = event.kind == "tool_call" and event.tool in self.tools
        return "pre_operation" if is_named else None

    def __repr__(self) -> str:
        return f"before({', '.join(map(repr, self.tools))})"
