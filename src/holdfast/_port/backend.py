"""What the engine asks of a storage technology.

A backend moves batches of records. Every verb is one transaction and takes several
records at once. All verbs are coroutines; those of a ``blocking`` backend never
suspend, so that `run` can finish them without an event loop. Nothing here knows codecs,
agents or frameworks.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Generic, NamedTuple, Protocol, TypeVar

import msgspec

from holdfast._port.plans import (
    Admission,
    Adoption,
    IndexBatch,
    Prune,
    Pruned,
    Wait,
)
from holdfast._port.queries import Query
from holdfast._port.reads import Key
from holdfast._port.writes import Outcome, Receipt, Write
from holdfast._values.caller_key import CallerKey
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

    ``logical_bytes`` is what saving every state as a whole would have written,
    ``stored_bytes`` the size of segments and records, ``file_bytes`` that of the files.
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
    """The records of families, oldest first, and what of them cannot be read."""

    threads: tuple[ThreadRecord, ...]
    checkpoints: tuple[Checkpoint, ...]
    entries: tuple[Entry, ...]
    moves: tuple[Move, ...]
    damage: tuple[str, ...]


class Place(NamedTuple):
    """Where the next portion of an inspection begins."""

    family: int = 0
    thread: int = 0
    number: int = 0


class HeadId(NamedTuple):
    """The head of a thread."""

    thread: str
    family: int
    checkpoint: str


class Portion(msgspec.Struct, Generic[R], frozen=True):
    """Some of a store's records, and what of them cannot be read.

    A checkpoint or an entry whose thread is lost has a thread name that says so.
    ``lost`` are the sequence numbers of checkpoints that are damaged. ``end`` is where
    the next portion begins, ``None`` after the last one.
    """

    records: tuple[R, ...]
    damage: tuple[str, ...]
    lost: tuple[int, ...]
    end: Place | None


class Inspection(Protocol):
    """A view of a store that may be damaged.

    It reports damage in what it returns and does not raise. What one call gives is of
    one moment. Others write between two calls, so that a backend has to keep nothing
    for a view that is read for long; inside of `moment` they do not.
    """

    def moment(self) -> AbstractAsyncContextManager[None]:
        """All calls inside of it see the same moment; it is to be short."""
        ...

    async def families(
        self, numbers: Sequence[int], *, heads_only: bool = False
    ) -> Rescued:
        """All records of some families but the segments.

        With ``heads_only``, of the checkpoints only the heads of threads.
        """
        ...

    async def threads(self, after: Place) -> Portion[ThreadRecord]:
        """A portion of the threads, without their heads; tombstones too."""
        ...

    async def checkpoints(self, after: Place) -> Portion[Checkpoint]:
        """A portion of the checkpoints; those of a family follow one another."""
        ...

    async def saves(self, after: Place) -> Portion[Checkpoint]:
        """A portion of the checkpoints by sequence, read past damaged indexes too."""
        ...

    async def heads(self, after: Place) -> Portion[HeadId]:
        """A portion of the living threads, those of `threads`: which heads they have.

        Without damage: `threads` and `saves` have reported it.
        """
        ...

    async def entries(self, after: Place) -> Portion[Entry]:
        """A portion of the journal entries."""
        ...

    async def headed_by(self, lost: Sequence[int]) -> list[str]:
        """The names of the threads whose heads have one of these numbers."""
        ...

    async def checkpoint(self, family: int, id_: str) -> Checkpoint | None:
        """A checkpoint by its id, ``None`` if it is missing or damaged."""
        ...

    async def segments(
        self, wanted: Sequence[tuple[int, Run]]
    ) -> list[list[Segment | None]]:
        """The segments of runs of families, ``None`` for what is missing or damaged.

        For each number of a run, what holds it: a block stands there repeatedly.
        """
        ...

    async def count_checkpoints(self) -> int:
        """How many checkpoints are stored."""
        ...

    async def count_saved(self, family: int, up_to: int) -> int:
        """How many checkpoints of a family there are up to a sequence number."""
        ...

    async def count_segments(self, families: Sequence[int]) -> list[int]:
        """How many segments of families are stored, also those that are not needed.

        Those in blocks are counted one by one, here and by `count_strays`.
        """
        ...

    async def count_strays(self) -> int:
        """How many segments are stored of families that have no checkpoint."""
        ...

    async def close(self) -> None:
        """Release the view."""
        ...


class Backend(Protocol):
    """A storage technology.

    The coroutines of a ``blocking`` backend never suspend. ``abilities`` are what not
    every backend can do: ``search``, ``backup``, ``compact``, ``pack``: to hold many
    segments as one block, and ``reuse``: to use the space of what was replaced again at
    once. A backend that cannot ``pack`` is never given a block.
    """

    @property
    def blocking(self) -> bool: ...

    @property
    def abilities(self) -> frozenset[str]: ...

    async def ready(self) -> None:
        """Prepare for all other verbs; called once, before them."""
        ...

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        """Apply all writes or none, in one durable transaction."""
        ...

    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
        """The records of ``keys`` in the same order, ``None`` for a missing one."""
        ...

    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        """The segments of ``runs`` in order; `Corrupt` if one is missing or damaged.

        A block is given once for each run of which it holds a part.
        """
        ...

    async def scan(self, query: Query[R]) -> Page[R]:
        """One page of a listing, in a stable order, without leaving a cursor open."""
        ...

    async def prune(self, plan: Prune) -> Pruned:
        """Carry out a plan in one transaction."""
        ...

    async def changes(self, after: int, limit: int, timeout: float) -> Page[Change]:
        """The changes after a number, in commit order; waits while there are none."""
        ...

    async def setting(
        self, name: str, value: bytes | None = None, *, replace: bool = False
    ) -> bytes | None:
        """A fact about the whole store; ``value`` is stored if there is none yet.

        With ``replace`` it is stored in any case.
        """
        ...

    async def index(self, batch: IndexBatch) -> Wait | None:
        """Bring the search index of some threads up to date, in one transaction.

        Unless the batch is the last, the backend may still be at it when this returns.
        It then gives what waits for the end, and raises what went wrong; the caller
        calls it before the next batch. This verb and the queries about the index are
        used only with backends that have the ability ``search``.
        """
        ...

    async def mend(self) -> bool:
        """Drop the search index if it is damaged; true if it was.

        A search builds it again.
        """
        ...

    async def adopt(self, adoption: Adoption) -> None:
        """Insert what is missing, with the numbers it had, in one transaction.

        Used only on a store that holds nothing but what it adopted from one other.
        """
        ...

    async def admit(self, admission: Admission) -> None:
        """Insert families with new numbers, all of them or none, in one transaction.

        `Conflict` (code ``thread_exists``) if a thread with one of their names exists.
        """
        ...

    async def facts(self) -> Facts:
        """Counts and sizes."""
        ...

    async def inspect(self) -> Inspection:
        """A view of all records that reads past damage."""
        ...

    async def check(self) -> list[str]:
        """The problems that the technology itself finds in its files."""
        ...

    async def compact(self) -> None:
        """Return unused space to the file system."""
        ...

    async def scrub(self) -> None:
        """Leave nothing of removed records in logs, indexes and unused space.

        As far as the technology can; it may take as long as `compact`.
        """
        ...

    async def backup(self, path: str) -> None:
        """Write a consistent copy to a new file, while others may write."""
        ...

    def using(self, connection: object) -> Backend:
        """The same backend on a caller's connection, inside the caller's transaction.

        `Unsupported` if this technology has none.
        """
        ...

    async def close(self) -> None:
        """Release everything; a second call does nothing."""
        ...


class Encrypted(Backend, Protocol):
    """A backend whose records are encrypted with keys of its caller."""

    key: CallerKey

    @property
    def seal_key(self) -> bytes:
        """The key for authenticating what is said about the whole store."""
        ...

    async def rotate(self, key: CallerKey) -> None:
        """Let another key of the caller open the store, and the one before no more."""
        ...

    async def destroy(self, owner: str | None) -> bool:
        """Make all that this store holds of an owner unreadable.

        Gives whether earlier copies of the store are unreadable for the owner too.
        """
        ...

    def belongs(self, family: int, owner: str) -> bool:
        """Whether no key but the owner's decrypts what was read of a family."""
        ...


class BlockingBackend(Backend, Protocol):
    """A backend whose coroutines never suspend has one verb more."""

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> Sequence[Outcome]:
        """Several commits in one call; each is all or nothing, with its own outcome."""
        ...
