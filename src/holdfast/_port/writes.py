"""Writes: the values that `Backend.commit` takes, and the receipts it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from holdfast._values.records import UNSET, Checkpoint, Entry, Origin, Segment, Unset
from holdfast.errors import Conflict, HoldfastError


class Start(msgspec.Struct, frozen=True):
    """The values of a new thread, if the thread of a write does not exist.

    ``head`` is the checkpoint a fork starts from; the new thread joins its family.
    ``anew`` allows to use the name of a deleted thread again.
    """

    kind: str = "thread"
    owner: str | None = None
    agent: str | None = None
    metadata: bytes = b""
    head: Checkpoint | None = None
    origin: Origin | None = None
    anew: bool = False


class Mark(msgspec.Struct, frozen=True):
    """A new label for a checkpoint, tags to add to it and tags to remove.

    ``expect`` is the label that the checkpoint must have, `UNSET` for any.
    """

    checkpoint: Checkpoint
    label: str | Unset | None = UNSET
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    expect: str | Unset | None = UNSET

    def applied(self, stored: Checkpoint) -> Checkpoint:
        """The stored checkpoint with this mark; `Conflict` if it has another label."""
        if not isinstance(self.expect, Unset) and stored.label != self.expect:
            text = f"the label of checkpoint {stored.id!r} was changed meanwhile"
            raise Conflict(
                f"{text}; look again, then decide",
                code="label_changed",
                thread=stored.thread,
            )
        kept = (tag for tag in stored.tags if tag not in self.remove)
        label = stored.label if isinstance(self.label, Unset) else self.label
        return msgspec.structs.replace(
            stored, label=label, tags=tuple(dict.fromkeys([*kept, *self.add]))
        )


class Turn(msgspec.Struct, frozen=True):
    """A head move that is not a save: rewind, undo or redo."""

    kind: str
    target: Checkpoint


class Details(msgspec.Struct, frozen=True):
    """New owner, metadata or agent of a thread."""

    owner: str | Unset | None = UNSET
    metadata: bytes | Unset = UNSET
    agent: str | Unset | None = UNSET


class Write(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All changes of one transaction in one thread.

    ``expect`` is the head that the thread must have: a checkpoint, ``None`` for a
    thread without one, `UNSET` for any. It is the parent of a new checkpoint. A write
    with only an expected head changes nothing and checks the head. If a condition
    fails, the backend changes nothing and raises `Conflict` with one of the codes
    ``head_moved``, ``id_taken``, ``segment_taken``, ``entry_taken``, ``label_changed``,
    ``thread_exists``, ``thread_missing`` and ``thread_deleted``.

    ``entries`` whose keys are taken stay as they are, unless ``replace_entries``. With
    ``new_entries``, a taken key of the thread itself fails the whole write. With
    ``family_wide``, an entry of the same checkpoint and key in any living thread of the
    family is in force, and none is recorded. ``forget`` are keys of entries of the
    thread itself to remove, other keys than those of ``entries``; keys that do not
    exist are skipped. If only the journal is changed, forgetting logs a move of the
    kind ``forget``.

    ``proof`` is appended to the kind of the move that the write logs. With it,
    ``last_move`` is the number of the move before it in the log of the thread, 0 if it
    is the first and ``None`` if the caller has checked that. If there is another by
    now, nothing is changed, and `Conflict` has the code ``plan_stale``. Moves that a
    prune logs (``prune`` and ``delete``) do not count.

    ``report``, if set, is called after the commit with the number of commits that
    shared the transaction, and the seconds it took to make them durable (``None`` if
    unknown). A backend that knows neither does not call it.
    """

    thread: str
    at: int
    expect: Checkpoint | Unset | None
    start: Start | None = None
    checkpoint: Checkpoint | None = None
    segments: tuple[Segment, ...] = ()
    turn: Turn | None = None
    marks: tuple[Mark, ...] = ()
    details: Details | None = None
    entries: tuple[Entry, ...] = ()
    replace_entries: bool = False
    new_entries: bool = False
    family_wide: bool = False
    forget: tuple[str, ...] = ()
    proof: str = ""
    last_move: int | None = None
    report: Callable[[int, float | None], None] | None = None


class Receipt(msgspec.Struct, frozen=True):
    """The result of a write: its sequence number and the journal entries in force.

    ``packed`` is the size of its segments as they are stored, if a layer made them
    smaller.
    """

    seq: int
    family: int
    thread_number: int
    entries: tuple[Entry, ...] = ()
    packed: int | None = None


NEW_THREAD: Final = Start()

# The setting of an encrypted store; no other store has it.
KEYS: Final = "keys"

Outcome = list[Receipt] | HoldfastError
