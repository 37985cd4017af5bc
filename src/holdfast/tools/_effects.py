"""Tool calls that had effects, as a model is told of them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast._engine.context import Context
from holdfast._engine.effects import ledger
from holdfast._engine.effects.behind import in_force
from holdfast._engine.records.conversations import PREFIX
from holdfast.effects import Effect
from holdfast.tools._bounds import moment, shortened
from holdfast.tools._tool import Result, Scope

# How many of the newest a restore shows, and the bytes of JSON for each value of one.
MOST = 10
BRIEF_VALUE = 300
STAYS = (
    "These tool calls happened after the checkpoint and stay in force, though the"
    " conversations do not show them any more. Tell the user, and do not make them"
    f" again unless they are meant to happen twice. The newest {MOST} are shown;"
    " conversation_load gives all of a conversation as part effects.left_behind."
)


def left_behind(effects: Sequence[Effect]) -> Result:
    """The newest effects that a restore left behind, with a note if there are any."""
    shown = [
        {name: shortened(v, BRIEF_VALUE) for name, v in shown_effect(effect).items()}
        for effect in effects[-MOST:]
    ]
    found: Result = {"count": len(effects), "calls": shown}
    return found | ({"note": STAYS} if effects else {})


def shown_effect(effect: Effect) -> Result:
    """A call with its arguments and how it ended."""
    ended: Result = {"status": effect.status}
    if effect.status == "completed":
        ended["result"] = effect.result
    if effect.error is not None:
        ended["error"] = effect.error
    return {
        "conversation_id": effect.thread.removeprefix(PREFIX),
        "tool": effect.tool,
        "arguments": effect.arguments,
        **ended,
        "at": moment(effect.at),
    }


async def effects_of(context: Context, scope: Scope, thread: str) -> Result:
    """The calls of a conversation, and those that it or its forks left behind."""
    made = await ledger.effects(context, thread)
    behind = in_force(await ledger.effects(context, thread, left_behind=True))
    names = {effect.thread for effect in behind}
    within = [name for name in names if await _is_within(context, scope, name)]
    return {
        "made": [shown_effect(effect) for effect in made],
        "left_behind": [shown_effect(e) for e in behind if e.thread in within],
    }


async def _is_within(context: Context, scope: Scope, thread: str) -> bool:
    """True if a fork is within the scope, too: its owner can be another."""
    record = await context.find_thread(thread)
    return record is not None and scope.holds(record)
