"""The records that go into an archive, their order and their numbers.

Numbers in a store depend on what else happened there. In an archive changes and threads
are counted from 1 in their order, so that its bytes depend on the content only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from holdfast._port import Adoption, Rescued
from holdfast._port.removal import merged, plan_removal
from holdfast._values.records import Checkpoint, Run
from holdfast.archive._frames import framed
from holdfast.archive._records import Digest, Sizes, encoded, forms_of
from holdfast.errors import NotFound

T = TypeVar("T")


class FamilyLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A family in the first frame: its threads that are not deleted, a fingerprint.

    The ``sha256`` covers the records of this family alone, numbered from 1: it is the
    same in every archive that holds the family unchanged.
    """

    threads: tuple[str, ...]
    sha256: Digest


class Heading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first frame of an archive."""

    changes: int
    threads: int
    families: tuple[FamilyLine, ...]


class Contents(msgspec.Struct, frozen=True):
    """The content of an archive; ``sha256`` covers all of it."""

    threads: tuple[str, ...]
    checkpoints: int
    segments: int
    journal_entries: int
    sha256: str


class Imported(msgspec.Struct, frozen=True):
    """What an import added; ``skipped`` threads were already there, unchanged."""

    threads: tuple[str, ...]
    checkpoints: int
    segments: int
    journal_entries: int
    skipped: tuple[str, ...] = ()


def heading_of(families: Sequence[Adoption]) -> Heading:
    """The first frame for families that are `numbered`."""
    changes = {seq for family in families for seq in seqs_of(family)}
    threads = {thread.number for family in families for thread in family.threads}
    lines = tuple(
        FamilyLine(tuple(living(family)), fingerprint(family)) for family in families
    )
    return Heading(len(changes), len(threads), lines)


def living(family: Adoption) -> list[str]:
    """The names of the threads that are not deleted."""
    return [thread.id for thread in family.threads if thread.deleted_at is None]


def seqs_of(family: Adoption) -> Iterator[int]:
    """The numbers of all changes of a family."""
    yield from (thread.changed for thread in family.threads)
    yield from (checkpoint.seq for checkpoint in family.checkpoints)
    yield from (entry.seq for entry in family.entries)
    yield from (move.seq for move in family.moves)


def runs_of(family: Adoption) -> list[Run]:
    """The segments of a family, in their order in the archive."""
    return merged(run for checkpoint in family.checkpoints for run in checkpoint.runs)


def sizes_of(family: Adoption) -> Sizes:
    """The number of records of each kind, and of segments."""
    return Sizes(
        len(family.threads),
        len(family.checkpoints),
        len(family.entries),
        len(family.moves),
        sum(run.last - run.first + 1 for run in runs_of(family)),
    )


def fingerprint(family: Adoption) -> str:
    """A digest of a family: equal if two stores hold the same family."""
    [alone] = numbered([family])
    digest = sha256(framed("family", encoded(sizes_of(alone))))
    for kind, form in forms_of(alone):
        digest.update(framed(kind, encoded(form)))
    return digest.hexdigest()


def numbered(families: Sequence[Adoption]) -> list[Adoption]:
    """Families with their changes and threads counted from 1, in the same order."""
    families = [_refounded(family) for family in families]
    seqs = _ranks(seq for family in families for seq in seqs_of(family))
    numbers = _ranks(t.number for family in families for t in family.threads)
    return [
        family.renumbered(seqs.__getitem__, numbers.__getitem__) for family in families
    ]


def _refounded(family: Adoption) -> Adoption:
    """The family numbered by its first thread; the one that founded it may be gone."""
    number = min(thread.number for thread in family.threads)
    if number == family.family:
        return family
    checkpoints = tuple(replace(c, family=number) for c in family.checkpoints)
    return replace(family, family=number, checkpoints=checkpoints)


def _ranks(values: Iterable[int]) -> dict[int, int]:
    return {value: rank for rank, value in enumerate(sorted(set(values)), 1)}


# --- choosing -------------------------------------------------------------------------


def chosen(
    rescued: Rescued, names: Collection[str] | None, since: int | None
) -> list[Adoption]:
    """The families of the named threads, without what was saved before ``since``."""
    families = families_of(rescued)
    if names is not None:
        known = {name for family in families for name in living(family)}
        for name in names:
            if name not in known:
                text = f"there is no thread {name!r} to export; see threads()"
                raise NotFound(text, thread=name)
        families = [f for f in families if not set(names).isdisjoint(living(f))]
    families = [family for family in families if living(family)]
    if since is not None:
        used = (f for f in families if max(t.updated_at for t in f.threads) >= since)
        families = [_shortened(family, since) for family in used]
    return [_without_tombstones(family) for family in families]


def families_of(rescued: Rescued) -> list[Adoption]:
    """The records of a store by family, in the order of the threads."""
    homes = {t.id: t.family for t in rescued.threads if t.deleted_at is None}
    threads = _grouped(rescued.threads, lambda t: t.family, lambda t: t.number)
    checkpoints = _grouped(rescued.checkpoints, lambda c: c.family, lambda c: c.seq)
    entries = _grouped(rescued.entries, lambda e: homes[e.thread], lambda e: e.seq)
    moves = _grouped(rescued.moves, lambda m: homes[m.thread], lambda m: m.seq)
    return [
        Adoption(
            family=number,
            threads=tuple(threads[number]),
            checkpoints=tuple(checkpoints[number]),
            entries=tuple(entries[number]),
            moves=tuple(moves[number]),
        )
        for number in threads
    ]


def _grouped(
    records: Iterable[T], family: Callable[[T], int], order: Callable[[T], int]
) -> dict[int, list[T]]:
    found: dict[int, list[T]] = defaultdict(list)
    for record in sorted(records, key=order):
        found[family(record)].append(record)
    return found


def _without_tombstones(family: Adoption) -> Adoption:
    """A family without deleted threads, except those that made a checkpoint in it."""
    needed = {checkpoint.thread_number for checkpoint in family.checkpoints}
    threads = (t for t in family.threads if t.deleted_at is None or t.number in needed)
    return replace(family, threads=tuple(threads))


def _shortened(family: Adoption, since: int) -> Adoption:
    """A family without checkpoints older than a time, except heads."""
    heads = {thread.head.id for thread in family.threads if thread.head}
    doomed = [c for c in family.checkpoints if c.saved_at < since and c.id not in heads]
    gone = {checkpoint.id for checkpoint in doomed}
    staying = _relinked(family.checkpoints, doomed)
    return replace(
        family,
        threads=tuple(
            replace(t, head=t.head and staying[t.head.id]) for t in family.threads
        ),
        checkpoints=tuple(staying.values()),
        entries=tuple(e for e in family.entries if e.checkpoint not in gone),
        moves=tuple(m for m in family.moves if gone.isdisjoint((m.source, m.target))),
    )


def _relinked(
    checkpoints: Sequence[Checkpoint], doomed: Sequence[Checkpoint]
) -> dict[str, Checkpoint]:
    """The checkpoints that stay, by id; their parents are checkpoints that stay."""
    gone = {checkpoint.id for checkpoint in doomed}
    staying = {c.id: c for c in checkpoints if c.id not in gone}
    plan = plan_removal(0, checkpoints, doomed)
    for relink in plan.relinks:
        parent = relink.parent.id if relink.parent else None
        staying[relink.child.id] = replace(
            relink.child, parent=parent, link=relink.link
        )
    return staying
