"""What the operations ask of a storage technology.

A backend moves batches of records. Every verb is one transaction and plural; all are
coroutines, and those of a ``blocking`` backend never suspend, so that `run` can finish
them without an event loop. Nothing here knows codecs, agents or frameworks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from holdfast._port.plans import Admission, Adoption, Indexing, Prune, Pruned
from holdfast._port.queries import Query
from holdfast._port.reads import Key
from holdfast._port.writes import Outcome, Receipt, Write
from holdfast._values.records import (
    Change,
    Checkpoint,
    Entry,
    Move,
    Page,
    Run,
    Segment,
    ThreadRecord,
)

R = TypeVar("R")


class Facts(msgspec.Struct, frozen=True):
    """Counts and sizes of a store, and what its backend can do.

    ``logical_bytes`` is what whole-state saving would have written, ``stored_bytes``
    what the segments take, ``file_bytes`` what the store occupies.
    """

    threads: int
    checkpoints: int
    segments: int
    journal_entries: int
    logical_bytes: int
    stored_bytes: int
    file_bytes: int
    format: int
    abilities: frozenset[str]


class Rescued(msgspec.Struct, frozen=True):
    """Every record that can still be read, oldest first, and what cannot.

    A checkpoint whose parent is gone comes without one; one whose thread is gone
    comes under a name that says so.
    """

    threads: tuple[ThreadRecord, ...]
    checkpoints: tuple[Checkpoint, ...]
    entries: tuple[Entry, ...]
    moves: tuple[Move, ...]
    damage: tuple[str, ...]


class Inspection(Protocol):
    """A consistent view of a store that may be damaged; it reports, never raises."""

    async def rescue(self) -> Rescued:
        """All records."""
        ...

    async def segments(self, family: int, run: Run) -> list[Segment | None]:
        """The segments of a run, ``None`` for what is missing or damaged."""
        ...

    async def count_segments(self) -> int:
        """How many segments there are, needed or not."""
        ...

    async def close(self) -> None:
        """Let go of the view."""
        ...


class Backend(Protocol):
    """A storage technology. ``blocking`` ones never suspend in their coroutines."""

    @property
    def blocking(self) -> bool: ...

    @property
    def abilities(self) -> frozenset[str]: ...

    async def ready(self) -> None:
        """Be able to do all of the following; called once, before anything else."""
        ...

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        """Apply all writes or none, in one durable transaction."""
        ...

    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
        """The records of ``keys`` in their order, ``None`` for the missing."""
        ...

    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        """The segments of ``runs`` in order; `Corrupt` if one is missing or damaged."""
        ...

    async def scan(self, query: Query[R]) -> Page[R]:
        """One page of a listing, in a stable order, without leaving a cursor open."""
        ...

    async def prune(self, plan: Prune) -> Pruned:
        """Carry out a plan in one transaction."""
        ...

    async def changes(self, after: int, limit: int, timeout: float) -> Page[Change]:
        """The feed behind ``after`` in commit order, waiting for it if it is empty."""
        ...

    async def setting(self, name: str, value: bytes | None = None) -> bytes | None:
        """A fact about the whole store; ``value`` is kept if there is none yet."""
        ...

    async def index(self, updates: Sequence[Indexing]) -> None:
        """Bring the index of some threads up to date, in one transaction.

        Asked only of backends with the ability ``search``, as `IndexKey` and the
        queries about the index are.
        """
        ...

    async def mend(self) -> bool:
        """Drop what can be made anew if it is damaged; whether something was."""
        ...

    async def adopt(self, adoption: Adoption) -> None:
        """Insert what is not there yet, with the numbers it had, in one transaction.

        Asked only of stores that hold nothing but what was adopted from one other.
        """
        ...

    async def admit(self, admission: Admission) -> None:
        """Insert families with new numbers, all of them or none, in one transaction.

        `Conflict` (code ``thread_exists``) if a thread of one of their names lives.
        """
        ...

    async def facts(self) -> Facts:
        """Counts and sizes."""
        ...

    async def inspect(self) -> Inspection:
        """A view for finding and surviving damage."""
        ...

    async def check(self) -> list[str]:
        """What the technology itself finds wrong with its files."""
        ...

    async def compact(self) -> None:
        """Give unused space back to the file system."""
        ...

    async def backup(self, path: str) -> None:
        """A consistent copy in a new file while others go on writing."""
        ...

    def using(self, connection: object) -> Backend:
        """The same over a caller's connection, as part of the caller's transaction.

        Where there is no such thing, `Unsupported` is raised.
        """
        ...

    async def close(self) -> None:
        """Release everything; closing twice is fine."""
        ...


class BlockingBackend(Backend, Protocol):
    """What a backend has to offer whose coroutines never suspend."""

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> Sequence[Outcome]:
        """Several commits, each as a whole and with its own outcome, in one call."""
        ...
