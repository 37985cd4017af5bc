"""Effects: each as a document, and those that a move of a head leaves behind."""

from __future__ import annotations

from typing import Any

from holdfast._api.thread import Thread
from holdfast._engine.effects.behind import in_force
from holdfast._values.records import Checkpoint
from holdfast.effects import Effect, Place
from holdfast.views.documents import iso, plain


def effect_document(effect: Effect) -> dict[str, Any]:
    """An effect with its arguments and its result."""
    return {
        "tool": effect.tool,
        "arguments": plain(effect.arguments),
        "status": effect.status,
        "result": plain(effect.result),
        "error": effect.error,
        "undone": effect.undone,
        "call_id": effect.call_id,
        "attempt": effect.attempt,
        "thread": effect.thread,
        "checkpoint": effect.checkpoint,
        "replays": _place_document(effect.replays),
        "settles": _place_document(effect.settles),
        "began_at": iso(effect.at),
        "seq": effect.seq,
    }


def _place_document(place: Place | None) -> dict[str, Any] | None:
    if place is None:
        return None
    thread, key, attempt = place
    return {"thread": thread, "key": key, "attempt": attempt}


def left_behind_by_fork(thread: Thread, start: Checkpoint) -> list[Effect]:
    """The effects in force on the line of a head that a fork will not have."""
    return in_force(thread.effects(since=start))


def left_behind_by_rewind(thread: Thread, target: Checkpoint) -> list[Effect]:
    """The effects in force on the line of a head that a rewind leaves behind."""
    if thread.get().id == target.id:
        return []  # the head stays, and with it what is recorded after it
    return in_force(thread.effects(since=target))
