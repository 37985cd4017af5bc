"""What a prune removes, and what takes over whole families from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from holdfast._port.reads import Indexed
from holdfast._port.writes import Write
from holdfast._values.records import Checkpoint, Entry, Move, Run, Segment, ThreadRecord

Renumber: TypeAlias = Callable[[int], int]


class Indexing(msgspec.Struct, frozen=True, kw_only=True):
    """What the index shall hold of a thread instead of what was ``found`` in it.

    ``texts`` are those of the last stretches; the stretches before are in the index.
    Where something else is found, somebody was faster, and nothing is changed.
    """

    number: int
    found: Indexed
    becomes: Indexed | None
    texts: tuple[str, ...] = ()


class Relink(msgspec.Struct, frozen=True):
    """A surviving child of a removed checkpoint and the ancestor that adopts it."""

    child: Checkpoint
    parent: Checkpoint | None
    link: bytes


class FamilyPlan(msgspec.Struct, frozen=True):
    """What to remove from one family.

    The backend refuses the plan with `Conflict` (code ``plan_stale``) when one of the
    checkpoints has meanwhile gone, become a head, gained a child that is not in the
    plan, or a label or tag, or when a child or its new parent is not as it was: then
    nothing is changed and the plan is made anew.
    """

    family: int
    checkpoints: tuple[Checkpoint, ...]
    relinks: tuple[Relink, ...]
    free: tuple[Run, ...]


class Prune(msgspec.Struct, frozen=True, kw_only=True):
    """Threads to drop, checkpoints to remove and segments to free, in one transaction.

    ``threads`` are dropped if their ``changed`` is still the one in the record; a
    family that loses its last thread goes as a whole. Tombstones older than
    ``forget_before`` go too. ``first`` and ``then`` are writes of the same transaction,
    made before anything is removed and after it. With ``dry_run`` only the counts are
    made.
    """

    at: int
    first: tuple[Write, ...] = ()
    threads: tuple[ThreadRecord, ...] = ()
    families: tuple[FamilyPlan, ...] = ()
    then: tuple[Write, ...] = ()
    forget_before: int | None = None
    dry_run: bool = False


class Pruned(msgspec.Struct, frozen=True):
    """What a prune removed, or with ``dry_run`` would remove."""

    threads: int = 0
    checkpoints: int = 0
    segments: int = 0
    bytes: int = 0


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one family as they are in another store, numbers included.

    Segments may come before the records that need them, and in several parts.
    """

    family: int
    threads: tuple[ThreadRecord, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    entries: tuple[Entry, ...] = ()
    moves: tuple[Move, ...] = ()
    segments: tuple[Segment, ...] = ()

    def renumbered(self, seq: Renumber, number: Renumber) -> Adoption:
        """The same records with other numbers: of changes, and of threads."""
        family = number(self.family)
        checkpoints = {c.id: _moved(c, seq, number) for c in self.checkpoints}
        return replace(
            self,
            family=family,
            threads=tuple(
                replace(
                    thread,
                    head=thread.head and checkpoints[thread.head.id],
                    changed=seq(thread.changed),
                    family=family,
                    number=number(thread.number),
                )
                for thread in self.threads
            ),
            checkpoints=tuple(checkpoints.values()),
            entries=tuple(replace(e, seq=seq(e.seq)) for e in self.entries),
            moves=tuple(replace(m, seq=seq(m.seq)) for m in self.moves),
        )


def _moved(checkpoint: Checkpoint, seq: Renumber, number: Renumber) -> Checkpoint:
    return replace(
        checkpoint,
        seq=seq(checkpoint.seq),
        family=number(checkpoint.family),
        thread_number=number(checkpoint.thread_number),
    )


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """Families of another store that come to stand beside what is there.

    Their numbers say only what comes before what: changes are numbered from 1 to
    ``changes``, threads from 1 to ``threads``, and all get new ones. ``families`` gives
    each family and its segments, which are read while they are written; it is called
    again if the transaction has to be.
    """

    changes: int
    threads: int
    families: Callable[[], Iterable[tuple[Adoption, Iterable[Segment]]]]
