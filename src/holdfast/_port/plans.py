"""Plans: removing checkpoints and threads, indexing, taking over whole families."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from holdfast._port.index_queries import Indexed
from holdfast._port.writes import Write
from holdfast._values.records import Checkpoint, Entry, Move, Run, Segment, ThreadRecord

Renumber: TypeAlias = Callable[[int], int]
# Waits for work in the background, and raises its error.
Wait: TypeAlias = Callable[[], None]


class Indexing(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An update of the index: the entry of a thread was ``found`` and gets ``becomes``.

    ``texts`` are the texts of the last stretches; the earlier stretches are in the
    index. If the entry is no longer the one that was found, another writer updated it
    first, and nothing is changed. Without ``becomes`` the thread is removed from the
    index.
    """

    number: int
    found: Indexed
    becomes: Indexed | None
    texts: tuple[str, ...] = ()


class IndexBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Updates of the index in one transaction; their texts were prepared in ``form``.

    An index of another form is discarded and built again. After the updates the index
    counts as complete up to the change ``up_to``, if the backend finds no thread
    changed until then whose entry is outdated. With ``is_last`` no other batch follows
    for now: the backend may merge the index segments.
    """

    form: int
    without: str
    threads: tuple[Indexing, ...]
    up_to: int | None = None
    is_last: bool = False


class Relink(msgspec.Struct, frozen=True):
    """A child of a removed checkpoint that stays, and its new parent."""

    child: Checkpoint
    parent: Checkpoint | None
    link: bytes


class FamilyPlan(msgspec.Struct, frozen=True):
    """The removals and replacements in one family.

    The backend changes nothing and raises `Conflict` (code ``plan_stale``) if one of
    the checkpoints meanwhile was removed, became a head, or got a label, a tag, or a
    child that is not in the plan, or if a child or its new parent has changed. The
    engine then plans again. The plan knows all checkpoints up to the number ``known``:
    an unknown child has a higher number.

    ``packed`` replaces the segments and blocks that hold the same numbers now. It and
    ``free`` must cover whole blocks: a block that would be removed only in part makes
    the plan stale, and so does a segment of ``packed`` that was freed.

    ``moves`` are moves that stay and get another kind; their other fields are as
    stored. ``logged`` is the number of the family's last move, 0 if there is none, and
    the count of its moves: the plan is stale if the log has changed.
    """

    family: int
    checkpoints: tuple[Checkpoint, ...]
    relinks: tuple[Relink, ...]
    free: tuple[Run, ...]
    packed: tuple[Segment, ...] = ()
    known: int = 0
    moves: tuple[Move, ...] = ()
    logged: tuple[int, int] | None = None


class Prune(msgspec.Struct, frozen=True, kw_only=True):
    """Threads to drop, checkpoints to remove and segments to free, in one transaction.

    ``threads`` are dropped if their ``changed`` is still the one in the record; a
    family that loses its last thread is removed as a whole, and so are tombstones older
    than ``forget_before``. ``first`` and ``then`` are writes of the same transaction,
    made before and after the removal. With ``dry_run`` everything is only counted.

    With ``erase`` the names of ``threads`` are removed too, and replaced as
    `holdfast._values.graves` says. Then ``threads`` may hold tombstones, but none whose
    checkpoints are still in use. A dry run gets no tombstones.
    """

    at: int
    first: tuple[Write, ...] = ()
    threads: tuple[ThreadRecord, ...] = ()
    families: tuple[FamilyPlan, ...] = ()
    then: tuple[Write, ...] = ()
    forget_before: int | None = None
    erase: bool = False
    dry_run: bool = False


class Pruned(msgspec.Struct, frozen=True):
    """The counts of a prune: removed, or with ``dry_run`` to be removed."""

    threads: int = 0
    checkpoints: int = 0
    segments: int = 0
    bytes: int = 0

    def __add__(self, other: Pruned) -> Pruned:
        return Pruned(
            self.threads + other.threads,
            self.checkpoints + other.checkpoints,
            self.segments + other.segments,
            self.bytes + other.bytes,
        )


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """Records of one family of another store, with their numbers.

    They may come in several parts, the threads with their entries and moves last: a
    family exists once its threads do. With ``anew`` the remains of an interrupted or an
    earlier copy of the family are removed first. ``known`` are the sequence numbers, by
    their ids, of checkpoints in other parts to which these refer. A part without
    threads has the ``owner`` that `family_owner` gives; backends need not store it.
    """

    family: int
    owner: str | None = None
    anew: bool = False
    threads: tuple[ThreadRecord, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    entries: tuple[Entry, ...] = ()
    moves: tuple[Move, ...] = ()
    segments: tuple[Segment, ...] = ()
    known: dict[str, int] = {}

    def renumbered(self, seq: Renumber, number: Renumber) -> Adoption:
        """The same records with other numbers for changes and threads."""
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


def family_owner(threads: Iterable[ThreadRecord]) -> str | None:
    """The owner of all threads of a family, ``None`` if there are several or none."""
    owners = {thread.owner for thread in threads if thread.deleted_at is None}
    return owners.pop() if len(owners) == 1 else None


def _moved(checkpoint: Checkpoint, seq: Renumber, number: Renumber) -> Checkpoint:
    return replace(
        checkpoint,
        seq=seq(checkpoint.seq),
        family=number(checkpoint.family),
        thread_number=number(checkpoint.thread_number),
    )


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """Families of another store to add to this one.

    Their numbers only give an order: changes are numbered from 1 to ``changes``,
    threads from 1 to ``threads``, and all get new numbers. ``families`` gives each
    family with its segments, which are read while they are written; it is called again
    if the transaction is repeated.
    """

    changes: int
    threads: int
    families: Callable[[], Iterable[tuple[Adoption, Iterable[Segment]]]]
