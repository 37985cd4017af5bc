"""The names of a scope's records: as its callers know them, and as they are stored.

A scope stands before the name of a thread, of an owner and of an agent. It is then part
of every key: of the index for names, of the encryption key of an owner, and of what row
level security compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias, TypeVar

from msgspec.structs import replace

from holdfast._port import Adoption, Details, HeadId, Prune, Start, Stored, Write
from holdfast._values.records import (
    Change,
    Checkpoint,
    Entry,
    Move,
    Origin,
    ThreadRecord,
    Unset,
)

R = TypeVar("R")
# A name as it is stored to the one that callers know, or the other way round.
Rename: TypeAlias = Callable[[str], str]


class ScopeNames(NamedTuple):
    """The prefix of the names of a scope."""

    prefix: str

    def put(self, name: str) -> str:
        """A name as it is stored."""
        return self.prefix + name

    def strip(self, name: str) -> str:
        """A stored name as callers know it."""
        return name.removeprefix(self.prefix)

    def has(self, record: object) -> bool:
        """True if a stored record belongs to the scope."""
        name = _NAME[type(record)](record)
        return name.startswith(self.prefix)

    def shown(self, records: Iterable[R]) -> tuple[R, ...]:
        """The given records that belong to the scope, named as callers know them."""
        return tuple([renamed(r, self.strip) for r in records if self.has(r)])

    def text(self, text: str) -> str:
        """A text of the backend with the names as callers know them."""
        return text.replace(self.prefix, "").replace(self._escaped, "")

    def is_about_us(self, text: str) -> bool:
        """True if a text of the backend names something of the scope."""
        return self.prefix in text or self._escaped in text

    @property
    def _escaped(self) -> str:
        return repr(self.prefix)[1:-1]


# --- records with other names, in either direction ------------------------------------


def renamed(record: R, rename: Rename) -> R:
    """The same record with other names."""
    result: R = _RENAME[type(record)](record, rename)
    return result


def _any(name: str | None, rename: Rename) -> str | None:
    return name if name is None else rename(name)


def _origin(origin: Origin | None, rename: Rename) -> Origin | None:
    return origin and Origin(rename(origin.thread), origin.checkpoint)


def _checkpoint(checkpoint: Checkpoint, rename: Rename) -> Checkpoint:
    return replace(checkpoint, thread=rename(checkpoint.thread))


def _thread(thread: ThreadRecord, rename: Rename) -> ThreadRecord:
    return replace(
        thread,
        id=rename(thread.id),
        owner=_any(thread.owner, rename),
        agent=_any(thread.agent, rename),
        head=thread.head and _checkpoint(thread.head, rename),
        forked_from=_origin(thread.forked_from, rename),
    )


def _of_thread(record: Any, rename: Rename) -> Any:
    return replace(record, thread=rename(record.thread))


_RENAME: dict[type, Callable[[Any, Rename], Any]] = {
    Change: _of_thread,
    Checkpoint: _checkpoint,
    Entry: _of_thread,
    HeadId: lambda head, rename: head._replace(thread=rename(head.thread)),
    Move: _of_thread,
    Stored: lambda s, rename: Stored(_thread(s.thread, rename), s.segments),
    ThreadRecord: _thread,
}
_NAME: dict[type, Callable[[Any], str]] = {
    Change: lambda change: change.thread,
    Checkpoint: lambda checkpoint: checkpoint.thread,
    Entry: lambda entry: entry.thread,
    HeadId: lambda head: head.thread,
    Move: lambda move: move.thread,
    Stored: lambda stored: stored.thread.id,
    ThreadRecord: lambda thread: thread.id,
}


# --- what is written ------------------------------------------------------------------


def renamed_write(write: Write, put: Rename) -> Write:
    """A write as it is stored.

    Records that only say which checkpoint is meant stay as they are: backends look at
    their numbers.
    """
    if not (write.start or write.details or write.entries):  # as for most saves
        checkpoint = write.checkpoint and _checkpoint(write.checkpoint, put)
        return replace(write, thread=put(write.thread), checkpoint=checkpoint)
    return replace(
        write,
        thread=put(write.thread),
        start=write.start and _start(write.start, put),
        checkpoint=write.checkpoint and _checkpoint(write.checkpoint, put),
        details=write.details and _details(write.details, put),
        entries=tuple([_of_thread(entry, put) for entry in write.entries]),
    )


def _start(start: Start, put: Rename) -> Start:
    if start.owner is None and start.agent is None and start.origin is None:
        return start
    return replace(
        start,
        owner=_any(start.owner, put),
        agent=_any(start.agent, put),
        origin=_origin(start.origin, put),
    )


def _details(details: Details, put: Rename) -> Details:
    owner, agent = details.owner, details.agent
    return replace(
        details,
        owner=owner if isinstance(owner, Unset) else _any(owner, put),
        agent=agent if isinstance(agent, Unset) else _any(agent, put),
    )


def renamed_prune(plan: Prune, put: Rename) -> Prune:
    """A plan as it is carried out below.

    Tombstones stay: those of all scopes are forgotten together, by a prune without one.
    """
    return replace(
        plan,
        first=tuple([renamed_write(write, put) for write in plan.first]),
        threads=tuple([_thread(thread, put) for thread in plan.threads]),
        then=tuple([renamed_write(write, put) for write in plan.then]),
        forget_before=None,
    )


def renamed_adoption(adoption: Adoption, put: Rename) -> Adoption:
    """The records of a family as they are stored."""
    return replace(
        adoption,
        owner=_any(adoption.owner, put),
        threads=tuple([_thread(thread, put) for thread in adoption.threads]),
        checkpoints=tuple([_checkpoint(c, put) for c in adoption.checkpoints]),
        entries=tuple([_of_thread(entry, put) for entry in adoption.entries]),
        moves=tuple([_of_thread(move, put) for move in adoption.moves]),
    )
