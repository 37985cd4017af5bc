"""The effects of a thread as a viewer sorts them: happened, unknown, left behind."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._values.reference import HEAD
from holdfast.effects import Effect
from holdfast.views.commands import command
from holdfast.views.documents import iso
from holdfast.views.showing import Showing

Outcome: TypeAlias = Literal[
    "happened", "unknown", "failed", "repeated", "left_behind", "undone"
]

MOST = 1_000


class EffectsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The effects of a thread up to a checkpoint, by default up to its head."""

    thread: str
    at: str = HEAD


async def effects_document(
    context: Context, query: EffectsQuery, showing: Showing
) -> dict[str, Any]:
    """The effects on the line, oldest first, then those that it left behind."""
    own = await ledger.effects(context, query.thread, query.at)
    behind = await ledger.effects(context, query.thread, query.at, left_behind=True)
    found: list[tuple[Effect, Outcome]] = [
        *((effect, _outcome(effect)) for effect in own),
        *((effect, _behind(effect)) for effect in behind),
    ]
    return {
        "thread": query.thread,
        "effects": [shown_effect(effect, end, showing) for effect, end in found[:MOST]],
        "cut": len(found) > MOST,
    }


def shown_effect(effect: Effect, outcome: Outcome, showing: Showing) -> dict[str, Any]:
    """One effect."""
    listing = command("effects", effect.thread)
    commands = {"effects": listing}
    if outcome == "unknown":
        commands["resolve"] = resolve_command(effect)
    return {
        "tool": showing.line(effect.tool),
        "arguments": showing.value(effect.arguments),
        "status": outcome,
        "result": showing.value(effect.result),
        "error": None if effect.error is None else showing.text(effect.error),
        "call": effect.call_id,
        "attempt": effect.attempt,
        "thread": effect.thread,
        "checkpoint": effect.checkpoint,
        "at": iso(effect.at),
        "commands": commands,
    }


def resolve_command(effect: Effect, how: str = "--result", said: str = "JSON") -> str:
    """The command that records how a call ended."""
    return command("resolve", effect.thread, effect.call_id, how, said)


def _outcome(effect: Effect) -> Outcome:
    if effect.undone:
        return "undone"
    if effect.replays is not None:
        return "repeated"
    if effect.status == "completed":
        return "happened"
    return "failed" if effect.status == "failed" else "unknown"


def _behind(effect: Effect) -> Outcome:
    outcome = _outcome(effect)
    return outcome if outcome in {"undone", "failed"} else "left_behind"
