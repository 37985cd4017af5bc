"""The messages that the model saw: those within the budget of a context window."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast._engine.context import Context
from holdfast._messages.transcript import calls_of, role_of, text_of, tokens_of, window
from holdfast.views.showing import Showing
from holdfast.views.state_values import StateReader, reader_of

BUDGET = "budget"
MOST_ITEMS = 1_000


class ContextQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One checkpoint, by its name."""

    checkpoint: str


async def context_document(
    context: Context, query: ContextQuery, showing: Showing
) -> dict[str, Any]:
    """The messages that fit the state's budget of tokens, or all without a budget."""
    reader = await reader_of(context, query.checkpoint)
    numbered = list(enumerate((await reader.transcript()).messages))
    limit = await _budget(reader)
    if limit is not None:
        seen = {id(message) for message in window([m for _, m in numbered], limit)}
        numbered = [(n, m) for n, m in numbered if id(m) in seen]
    items = [_item(n, m, showing) for n, m in numbered[-MOST_ITEMS:]]
    return {
        "checkpoint": reader.checkpoint.id,
        "items": items,
        "tokens": sum(tokens_of(message) for _, message in numbered),
        "limit": limit,
        "cut": len(numbered) > MOST_ITEMS,
    }


async def _budget(reader: StateReader) -> int | None:
    if not reader.is_mapping or BUDGET not in reader.stored:
        return None
    found = await reader.value(BUDGET)
    return found if type(found) is int and found > 0 else None


def _item(position: int, message: object, showing: Showing) -> dict[str, Any]:
    return {
        "position": position,
        "role": role_of(message),
        "text": showing.text(text_of(message)),
        "calls": [
            {
                "id": call.id,
                "name": showing.line(call.name),
                "arguments": showing.value(call.arguments),
            }
            for call in calls_of(message, position)
        ],
        "tokens": tokens_of(message),
    }
