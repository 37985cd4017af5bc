"""The interface that every storage technology implements.

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
    """Counts and sizes of a store, and the abilities of its backend.

    ``logical_bytes`` is the size of every state, saved as a whole, ``stored_bytes`` the
    size of segments and records, ``file_bytes`` that of the files.
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
    """The records of families, oldest first, and the damage that was met."""

    threads: tuple[ThreadRecord, ...]
    checkpoints: tuple[Checkpoint, ...]
    entries: tuple[Entry, ...]
    moves: tuple[Move, ...]
    damage: tuple[str, ...]


class Place(NamedTuple):
    """The position of the next portion of an inspection."""

    family: int = 0
    thread: int = 0
    number: int = 0


class HeadId(NamedTuple):
    """The head of a thread."""

    thread: str
    family: int
    checkpoint: str


class Portion(msgspec.Struct, Generic[R], frozen=True):
    """Some of a store's records, and the damage that was met.

    A checkpoint or an entry of a lost thread gets a placeholder as thread name.
    ``lost`` are the sequence numbers of checkpoints that are damaged. ``end`` is where
    the next portion begins, ``None`` after the last one.
    """

    records: tuple[R, ...]
    damage: tuple[str, ...]
    lost: tuple[int, ...]
    end: Place | None


class Inspection(Protocol):
    """A view of a store that may be damaged.

    It reports damage in its results and does not raise. One call reads one moment.
    Other writers may commit between two calls, so that a backend keeps no old versions
    for a view that is open for long. Inside of `moment` all calls read the same moment.
    """

    def moment(self) -> AbstractAsyncContextManager[None]:
        """All calls inside of it see the same moment; keep it short."""
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
        """The heads of a portion of the living threads, those of `threads`.

        It reports no damage: `threads` and `saves` have reported it.
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

        Each number of a run gets the segment or block that holds it: a block is
        repeated.
        """
        ...

    async def count_checkpoints(self) -> int:
        """The number of checkpoints that are stored."""
        ...

    async def count_saved(self, family: int, up_to: int) -> int:
        """The number of checkpoints of a family up to a sequence number."""
        ...

    async def count_segments(self, families: Sequence[int]) -> list[int]:
        """The numbers of segments of families that are stored, also of those not
        needed.

        Those in blocks are counted one by one, here and by `count_strays`.
        """
        ...

    async def count_strays(self) -> int:
        """The number of stored segments of families that have no checkpoint."""
        ...

    async def close(self) -> None:
        """Release the view."""
        ...


class Backend(Protocol):
    """A storage technology.

    The coroutines of a ``blocking`` backend never suspend. ``abilities`` are optional:
    ``search``, ``backup``, ``compact``, ``pack`` (holds many segments as one block) and
    ``reuse`` (uses the space of replaced records again at once). A backend that cannot
    ``pack`` never gets a block.
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

        A block is returned once for each run of which it holds a part.
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

        Unless the batch is the last, the backend may still be working when this
        returns. It then returns a function that waits for the end and raises errors of
        the work; the caller calls it before the next batch. This verb and the queries
        about the index are used only with backends that have the ability ``search``.
        """
        ...

    async def mend(self) -> bool:
        """Drop the search index if it is damaged; true if it was.

        A search builds it again.
        """
        ...

    async def adopt(self, adoption: Adoption) -> None:
        """Insert missing records, with the numbers they had, in one transaction.

        Used only on a store whose records were all adopted from one other store.
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
        """Remove every trace of removed records from logs, indexes and unused space.

        It does as much as the technology can, and may take as long as `compact`.
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
        """The key that authenticates statements about the whole store."""
        ...

    async def rotate(self, key: CallerKey) -> None:
        """Let another key of the caller open the store instead of the key before."""
        ...

    async def destroy(self, owner: str | None) -> bool:
        """Make all data of an owner in this store unreadable.

        Returns true if the owner's data in earlier copies of the store is unreadable
        too.
        """
        ...

    def belongs(self, family: int, owner: str) -> bool:
        """True if no key but the owner's decrypts the records of a family."""
        ...


class BlockingBackend(Backend, Protocol):
    """A backend whose coroutines never suspend has one verb more."""

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> Sequence[Outcome]:
        """Several commits in one call; each is all or nothing, with its own outcome."""
        ...
