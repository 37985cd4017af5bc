"""Undo and redo, and the message of a command that moved a head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._engine.effects.behind import in_force
from holdfast._values.records import Checkpoint
from holdfast.cli._effects import behind_lines
from holdfast.cli._invocation import Invocation
from holdfast.cli._resolve import thread_named
from holdfast.effects import Effect
from holdfast.views.documents import checkpoint_document
from holdfast.views.effects import effect_document
from holdfast.views.references import is_on_line, short_id


def take_steps(
    cli: Invocation, name: str | None, kind: Literal["undo", "redo"], times: int
) -> None:
    """Undo or redo some times, and print the move."""
    with cli.writing() as store:
        thread = thread_named(store, name)
        old, made = thread.get(), thread.effects()
        for _ in range(times):
            thread.undo() if kind == "undo" else thread.redo()
        kept = {effect.place for effect in thread.effects()}
        behind = in_force(effect for effect in made if effect.place not in kept)
        print_move(cli, store, thread, kind, old, behind)


def print_move(
    cli: Invocation,
    store: Store,
    thread: Thread,
    kind: str,
    old: Checkpoint,
    behind: Sequence[Effect],
) -> None:
    """Print the old and the new checkpoint of a head, and what it left behind."""
    new = thread.get()
    document = {
        "thread": thread.id,
        "kind": kind,
        "from": checkpoint_document(old),
        "to": checkpoint_document(new),
        "left_behind": [effect_document(effect) for effect in behind],
    }
    arrow = cli.out.glyphs.arrow
    listing = f"holdfast effects {thread.id} --left-behind"
    cli.out.done(
        "moved/1",
        document,
        (thread.id, "name"),
        (f"  {kind} {step(store, thread, old)} {arrow} @{new.step}", ""),
        more=behind_lines(cli.out, behind, listing),
    )


def step(store: Store, thread: Thread, checkpoint: Checkpoint) -> str:
    """The step of a former head, with its id if the head no longer builds on it."""
    if is_on_line(thread, checkpoint):
        return f"@{checkpoint.step}"
    return f"@{checkpoint.step} ({short_id(store, checkpoint.id)})"
