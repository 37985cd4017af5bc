"""What a command says that has moved a head."""

from __future__ import annotations

from holdfast._records import Checkpoint
from holdfast._store import Store
from holdfast._thread import Thread
from holdfast.cli import _shown
from holdfast.cli._names import short_id
from holdfast.cli._session import Session


def tell_move(
    session: Session, store: Store, thread: Thread, kind: str, old: Checkpoint
) -> None:
    """Print where a head was and where it is now."""
    new = thread.get()
    document = {
        "thread": thread.id,
        "kind": kind,
        "from": _shown.checkpoint_document(old),
        "to": _shown.checkpoint_document(new),
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
