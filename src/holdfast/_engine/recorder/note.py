"""A note to the model when a conversation goes on from an earlier point."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast._engine.effects.ledger import shown_time
from holdfast.effects import Effect

MOST_NOTED = 50
NOTE = (
    "Note: this conversation goes on from an earlier point. Since then the following"
    " was done, and stays in force. Do not do it again unless it is meant to happen"
    " twice."
)


def note_about(effects: Sequence[Effect]) -> str:
    """A text that lists effects, the newest of them if there are many."""
    shown = [f"- {shown_time(effect)} {effect}" for effect in effects[-MOST_NOTED:]]
    if len(effects) > len(shown):
        shown.insert(0, f"- {len(effects) - len(shown)} earlier calls")
    return "\n".join([NOTE, *shown])
