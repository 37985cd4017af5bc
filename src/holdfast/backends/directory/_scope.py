"""The families of a request: their files have to be up to date and sound."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw
from msgspec.structs import replace

from holdfast._port import (
    Ancestors,
    CheckpointEntries,
    CheckpointKey,
    Entries,
    FamilyEntries,
    FamilyMoves,
    FamilySaves,
    FamilySizes,
    FamilySums,
    FamilyThreads,
    Key,
    LineLength,
    Marked,
    Matches,
    Moves,
    NumberedSaves,
    Outlines,
    Prune,
    Query,
    Saves,
    SegmentsKey,
    StateKey,
    ThreadKey,
    ThreadMoves,
    Threads,
    Write,
)
from holdfast._values.records import Checkpoint
from holdfast.backends.directory import _catalog
from holdfast.backends.directory._folder import Folder
from holdfast.backends.directory._sync import Families
from holdfast.backends.sqlite import Subject
from holdfast.errors import Corrupt

GONE = -1  # no checkpoint has this number


class FolderScope(NamedTuple):
    """Threads by name and families by number, or everything there is."""

    names: frozenset[str] = frozenset()
    families: frozenset[int] = frozenset()
    is_all: bool = False

    def __or__(self, other: FolderScope) -> FolderScope:
        return FolderScope(
            self.names | other.names,
            self.families | other.families,
            self.is_all or other.is_all,
        )


NOTHING = FolderScope()
EVERYTHING = FolderScope(is_all=True)


def family(number: int) -> FolderScope:
    """One family."""
    return FolderScope(families=frozenset({number}))


def thread(name: str) -> FolderScope:
    """The family of a thread, if there is one."""
    return FolderScope(names=frozenset({name}))


def of_keys(keys: Iterable[Key[Any]]) -> FolderScope:
    """The scope of a read."""
    names: set[str] = set()
    families: set[int] = set()
    for key in keys:
        if isinstance(key, ThreadKey | StateKey):
            names.add(key.name)
        elif isinstance(key, CheckpointKey | SegmentsKey):
            families.add(key.family)
        else:
            return EVERYTHING
    return FolderScope(frozenset(names), frozenset(families))


def of_query(query: Query[Any]) -> FolderScope:
    """The scope of a listing."""
    if isinstance(query, Ancestors):
        start = query.start
        return thread(start) if isinstance(start, str) else family(start.family)
    if isinstance(query, LineLength | Moves | Entries):
        return thread(query.thread)
    if isinstance(query, CheckpointEntries | ThreadMoves):
        found = query.thread if isinstance(query, CheckpointEntries) else query
        return family(found.family)
    if isinstance(
        query, FamilyMoves | FamilySaves | FamilySizes | FamilySums | FamilyThreads
    ):
        return FolderScope(families=frozenset(query.families))
    if isinstance(
        query,
        FamilyEntries | Marked | Matches | NumberedSaves | Outlines | Saves | Threads,
    ):
        return EVERYTHING if query.family is None else family(query.family)
    return EVERYTHING


def of_change(subject: Subject) -> FolderScope:
    """The scope of a change."""
    if subject is None:
        return EVERYTHING
    if not isinstance(subject, Prune):
        return of_writes(subject)
    if subject.forget_before is not None:
        return EVERYTHING  # a tombstone can be anywhere
    families = {family.family for family in subject.families}
    families |= {thread.family for thread in subject.threads}
    writes = of_writes((*subject.first, *subject.then))
    return writes | FolderScope(families=frozenset(families))


def of_writes(writes: Iterable[Write]) -> FolderScope:
    """The scope of a commit."""
    found = NOTHING
    for write in writes:
        found |= thread(write.thread)
        if write.start is not None and write.start.head is not None:
            found |= family(write.start.head.family)
    return found


class ScopeFamilies(NamedTuple):
    """The families of a scope (``None``: all), and whether a thread is unknown."""

    families: Families
    is_unknown: bool


def families_of(db: apsw.Connection, scope: FolderScope) -> ScopeFamilies:
    """The families of a scope in the index as it is now."""
    if scope.is_all:
        return ScopeFamilies(None, True)
    families, is_unknown = set(scope.families), False
    for name in scope.names:
        number = _catalog.family_of(db, name)
        if number is None:
            is_unknown = True
        else:
            families.add(number)
    return ScopeFamilies(frozenset(families), is_unknown)


def is_as_known(db: apsw.Connection, folder: Folder, scope: FolderScope) -> int | None:
    """The epoch of the index if all that a scope is about is sound and up to date.

    Nearly all requests are about one thread or one family, for which this takes one
    statement. For any other scope it is ``None``: then all has to be compared.
    """
    if scope.is_all or len(scope.names) + len(scope.families) != 1:
        return None
    state = _catalog.family_state(db, *scope.names, *scope.families)
    if state.has_problems or state.changed_at != folder.changed_at():
        return None
    if state.name is not None and folder.stamp(state.name) != state.stamp:
        return None
    return state.epoch


def guard(db: apsw.Connection, scope: FolderScope) -> None:
    """Refuse a request that is about a damaged file, or may be."""
    problems = _catalog.problems(db)
    if not problems:
        return
    families, is_unknown = families_of(db, scope)
    for problem in problems:
        is_meant = families is None or problem.family in families
        if is_meant or (is_unknown and not problem.is_certain):
            raise Corrupt(problem.name, problem.what)


def current(db: apsw.Connection, writes: Sequence[Write]) -> list[Write]:
    """The same writes, with checkpoints that are no longer there marked as gone.

    After a file was replaced, an old number can belong to another checkpoint.
    """
    return [_current(db, write) for write in writes]


def _current(db: apsw.Connection, write: Write) -> Write:
    expect, turn, start = write.expect, write.turn, write.start
    if isinstance(expect, Checkpoint):
        write = replace(write, expect=_known(db, expect))
    if turn is not None:
        write = replace(write, turn=replace(turn, target=_known(db, turn.target)))
    if start is not None and start.head is not None:
        write = replace(write, start=replace(start, head=_known(db, start.head)))
    marks = tuple(
        replace(mark, checkpoint=_known(db, mark.checkpoint)) for mark in write.marks
    )
    return replace(write, marks=marks)


def _known(db: apsw.Connection, checkpoint: Checkpoint) -> Checkpoint:
    return checkpoint if is_known(db, checkpoint) else replace(checkpoint, seq=GONE)


def is_known(db: apsw.Connection, checkpoint: Checkpoint) -> bool:
    """True if the number of a checkpoint still belongs to it."""
    found = _catalog.rows(db, "identity", seq=checkpoint.seq)
    return found == [(checkpoint.id, checkpoint.sha256)]
