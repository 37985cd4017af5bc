"""The records that go into an archive, their order and their numbers.

Numbers in a store depend on what else happened there. In an archive changes and threads
are counted from 1 in their order, so that its bytes depend on the content only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from holdfast._port import Adoption
from holdfast._port.removal import merged, plan_removal
from holdfast._values.records import Checkpoint, Run
from holdfast._values.typed import prepare
from holdfast.archive._frames import framed
from holdfast.archive._records import Digest, Sizes, encoded, forms_of
from holdfast.errors import Corrupt


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
    """The counts of an import; ``skipped`` threads were already there, unchanged."""

    threads: tuple[str, ...]
    checkpoints: int
    segments: int
    journal_entries: int
    skipped: tuple[str, ...] = ()


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
    alone = _numbered(family)
    digest = sha256(framed("family", encoded(sizes_of(alone))))
    for kind, form in forms_of(alone):
        digest.update(framed(kind, encoded(form)))
    return digest.hexdigest()


def _numbered(family: Adoption) -> Adoption:
    """A family with its changes and threads counted from 1, in the same order."""
    seqs = _ranks(seqs_of(family))
    numbers = _ranks(thread.number for thread in family.threads)
    try:
        return refounded(family).renumbered(seqs.__getitem__, numbers.__getitem__)
    except KeyError as error:
        detail = f"its records name {error}, a thread or change that it does not have"
        raise Corrupt(f"family {family.family}", detail) from error


def refounded(family: Adoption) -> Adoption:
    """The family numbered by its first thread; the one that founded it may be gone."""
    number = min(thread.number for thread in family.threads)
    if number == family.family:
        return family
    checkpoints = tuple(replace(c, family=number) for c in family.checkpoints)
    return replace(family, family=number, checkpoints=checkpoints)


def _ranks(values: Iterable[int]) -> dict[int, int]:
    return {value: rank for rank, value in enumerate(sorted(set(values)), 1)}


# --- choosing -------------------------------------------------------------------------


def exported(family: Adoption, since: int | None) -> Adoption | None:
    """A family without the checkpoints saved before ``since``.

    ``None`` if nothing is left: its threads are deleted, or were not used since then.
    """
    if not living(family):
        return None
    if since is not None:
        if max(thread.updated_at for thread in family.threads) < since:
            return None
        family = _shortened(family, since)
    return _without_tombstones(family)


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


prepare(Heading)
