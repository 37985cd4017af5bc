"""Which families a request is about: their files have to be looked at, and be sound."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import apsw
from msgspec.structs import replace

from holdfast._port import (
    Ancestors,
    CheckpointKey,
    Entries,
    IndexKey,
    Key,
    Marked,
    Matches,
    Moves,
    Query,
    Saves,
    StateKey,
    ThreadKey,
    Threads,
    Write,
)
from holdfast._values.records import Checkpoint
from holdfast.backends.directory import _catalog
from holdfast.backends.directory._folder import Folder
from holdfast.backends.directory._sync import Scope
from holdfast.errors import Corrupt

GONE = -1  # the number of no checkpoint


class Target(NamedTuple):
    """Threads by name and families by number, or everything there is."""

    names: frozenset[str] = frozenset()
    families: frozenset[int] = frozenset()
    is_all: bool = False

    def __or__(self, other: Target) -> Target:
        return Target(
            self.names | other.names,
            self.families | other.families,
            self.is_all or other.is_all,
        )


NOTHING = Target()
EVERYTHING = Target(is_all=True)


def family(number: int) -> Target:
    """One family."""
    return Target(families=frozenset({number}))


def thread(name: str) -> Target:
    """The family of a thread, if there is one."""
    return Target(names=frozenset({name}))


def of_keys(keys: Iterable[Key[Any]]) -> Target:
    """What some keys are about."""
    found = NOTHING
    for key in keys:
        if isinstance(key, ThreadKey | StateKey):
            found |= thread(key.name)
        elif isinstance(key, CheckpointKey):
            found |= family(key.family)
        elif not isinstance(key, IndexKey):
            return EVERYTHING
    return found


def of_query(query: Query[Any]) -> Target:
    """What a listing is about."""
    if isinstance(query, Ancestors):
        start = query.start
        return thread(start) if isinstance(start, str) else family(start.family)
    if isinstance(query, Moves | Entries):
        return thread(query.thread)
    if isinstance(query, Saves | Marked | Matches | Threads):
        return EVERYTHING if query.family is None else family(query.family)
    return EVERYTHING


def of_writes(writes: Iterable[Write]) -> Target:
    """What some writes change."""
    found = NOTHING
    for write in writes:
        found |= thread(write.thread)
        if write.start is not None and write.start.head is not None:
            found |= family(write.start.head.family)
    return found


class Reach(NamedTuple):
    """The families of a target, ``None`` for all; and whether a name is unknown."""

    families: Scope
    is_unknown: bool


def reach(db: apsw.Connection, target: Target) -> Reach:
    """What a target means in the index as it is now."""
    if target.is_all:
        return Reach(None, True)
    families, is_unknown = set(target.families), False
    for name in target.names:
        number = _catalog.family_of(db, name)
        if number is None:
            is_unknown = True
        else:
            families.add(number)
    return Reach(frozenset(families), is_unknown)


def is_as_known(db: apsw.Connection, folder: Folder, target: Target) -> int | None:
    """The epoch of the index if all that a target is about is sound and up to date.

    For one thread or one family, which nearly all requests are about, this is one
    statement. For anything else it is ``None``: look more closely.
    """
    if target.is_all or len(target.names) + len(target.families) != 1:
        return None
    sight = _catalog.sight(db, *target.names, *target.families)
    if sight.has_problems or sight.changed_at != folder.changed_at():
        return None
    if sight.name is not None and folder.look(sight.name) != sight.seen:
        return None
    return sight.epoch


def guard(db: apsw.Connection, target: Target) -> None:
    """Refuse what is about a damaged file, or may be."""
    problems = _catalog.problems(db)
    if not problems:
        return
    families, is_unknown = reach(db, target)
    for problem in problems:
        is_meant = families is None or problem.family in families
        if is_meant or (is_unknown and not problem.is_certain):
            raise Corrupt(problem.name, problem.what)


def current(db: apsw.Connection, writes: Sequence[Write]) -> list[Write]:
    """Writes in which a checkpoint that is another one now counts as gone.

    Files that somebody replaces can give an old number to a new checkpoint.
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
    """Whether a checkpoint's number is still its own."""
    found = _catalog.rows(db, "identity", seq=checkpoint.seq)
    return found == [(checkpoint.id, checkpoint.sha256)]
