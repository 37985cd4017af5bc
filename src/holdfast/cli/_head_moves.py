"""Moving heads through their log, and what a command says that has moved one."""

from __future__ import annotations

from typing import Literal

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._values.records import Checkpoint
from holdfast.cli import _documents
from holdfast.cli._names import short_id, thread_named
from holdfast.cli._session import Session


def take_steps(
    session: Session, name: str | None, kind: Literal["undo", "redo"], times: int
) -> None:
    """Undo or redo so often, and print where that leads."""
    with session.writing() as store:
        thread = thread_named(store, name)
        old = thread.get()
        for _ in range(times):
            thread.undo() if kind == "undo" else thread.redo()
        tell_move(session, store, thread, kind, old)


def tell_move(
    session: Session, store: Store, thread: Thread, kind: str, old: Checkpoint
) -> None:
    """Print where a head was and where it is now."""
    new = thread.get()
    document = {
        "thread": thread.id,
        "kind": kind,
        "from": _documents.checkpoint_document(old),
        "to": _documents.checkpoint_document(new),
    }
    arrow = session.out.glyphs.arrow
    session.out.done(
        "moved/1",
        document,
        (thread.id, "name"),
        (f"  {kind} {step(store, thread, old)} {arrow} @{new.step}", ""),
    )


def step(store: Store, thread: Thread, checkpoint: Checkpoint) -> str:
    """A checkpoint that was the head: its step, and its id if it was left behind."""
    on_line = checkpoint.step <= thread.step and thread.get(f"@{checkpoint.step}")
    if on_line and on_line.id == checkpoint.id:
        return f"@{checkpoint.step}"
    return f"@{checkpoint.step} ({short_id(store, checkpoint.id)})"
