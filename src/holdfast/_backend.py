"""The port: what the operations ask of a storage technology, and how to run it.

A backend moves batches of records. Every verb is one transaction and plural; all are
coroutines, and those of a ``blocking`` backend never suspend, so that `run` can finish
them without an event loop. Nothing here knows codecs, agents or frameworks.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from holdfast._records import (
    UNSET,
    Change,
    Checkpoint,
    Entry,
    Move,
    Origin,
    Page,
    Run,
    Segment,
    ThreadRecord,
    Unset,
    check_cursor,
    check_filter,
)
from holdfast.errors import HoldfastError

T = TypeVar("T")
R = TypeVar("R")
Renumber: TypeAlias = Callable[[int], int]


# --- commit ---------------------------------------------------------------------------


class Start(msgspec.Struct, frozen=True):
    """How to make the thread of a write if it is not there.

    ``head`` is the checkpoint a fork starts from; the new thread joins its family.
    ``anew`` says that taking the name of a deleted thread is meant.
    """

    kind: str = "thread"
    owner: str | None = None
    agent: str | None = None
    metadata: bytes = b""
    head: Checkpoint | None = None
    origin: Origin | None = None
    anew: bool = False


class Mark(msgspec.Struct, frozen=True):
    """A new label of a checkpoint, tags to add to it and tags to take from it."""

    checkpoint: Checkpoint
    label: str | Unset | None = UNSET
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    def applied(self, stored: Checkpoint) -> Checkpoint:
        """The checkpoint as it shall be from now on."""
        kept = (tag for tag in stored.tags if tag not in self.remove)
        label = stored.label if isinstance(self.label, Unset) else self.label
        return msgspec.structs.replace(
            stored, label=label, tags=tuple(dict.fromkeys([*kept, *self.add]))
        )


class Turn(msgspec.Struct, frozen=True):
    """A head move that is not a save: rewind, undo or redo."""

    kind: str
    target: Checkpoint


class Details(msgspec.Struct, frozen=True):
    """New owner or metadata of a thread."""

    owner: str | Unset | None = UNSET
    metadata: bytes | Unset = UNSET


class Write(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Everything one transaction changes in one thread.

    ``expect`` is the head that must be found: a checkpoint, ``None`` for a thread
    without one, `UNSET` for any. A new checkpoint's parent is the expected head. A
    write of nothing but an expected head changes nothing and makes sure of it. Where
    a condition fails the backend raises `Conflict` with one of the codes
    ``head_moved``, ``id_taken``, ``segment_taken``, ``thread_exists``,
    ``thread_missing``, ``thread_deleted`` and changes nothing.
    """

    thread: str
    at: int
    expect: Checkpoint | Unset | None
    start: Start | None = None
    checkpoint: Checkpoint | None = None
    segments: tuple[Segment, ...] = ()
    turn: Turn | None = None
    marks: tuple[Mark, ...] = ()
    details: Details | None = None
    entries: tuple[Entry, ...] = ()
    replace_entries: bool = False


class Receipt(msgspec.Struct, frozen=True):
    """What a write became: its place in the order and the journal entries in force."""

    seq: int
    family: int
    thread_number: int
    entries: tuple[Entry, ...] = ()


NEW_THREAD: Final = Start()


# --- read -----------------------------------------------------------------------------


class Key(msgspec.Struct, Generic[R], frozen=True):
    """Something that can be read; the parameter is what comes back."""


class ThreadKey(Key[ThreadRecord], frozen=True):
    """A thread by name; its tombstone when it was deleted."""

    name: str


class Stored(msgspec.Struct, frozen=True):
    """A living thread and the segments of its head, in the order of its runs.

    Without segments the head is the one the caller knows.
    """

    thread: ThreadRecord
    segments: tuple[Segment, ...] | None


class StateKey(Key[Stored], frozen=True):
    """A living thread that was saved to, with its whole state, in one view.

    The segments are left out if the head is still the one with the number ``known``.
    """

    name: str
    known: int | None = None


class CheckpointKey(Key[Checkpoint], frozen=True):
    """A checkpoint of a family by its whole id."""

    family: int
    id: str


class Stretch(NamedTuple):
    """Neighbouring texts of a thread that are indexed as one, both ends included."""

    first: int
    last: int
    size: int
    hash: int


class Indexed(msgspec.Struct, frozen=True):
    """What the index holds of a thread: its texts as they were at a ``changed``.

    ``form`` says how the texts were prepared. No thread is ever at the ``changed`` -1,
    of which there may be nothing, or not everything yet.
    """

    changed: int = -1
    form: int = 0
    stretches: tuple[Stretch, ...] = ()


class IndexKey(Key[Indexed], frozen=True):
    """What the index holds of the thread with a number."""

    number: int


# --- scan -----------------------------------------------------------------------------


class Query(msgspec.Struct, Generic[R], frozen=True):
    """A listing as a value; the parameter is what its page holds."""


class Ancestors(Query[Checkpoint], frozen=True, kw_only=True):
    """A checkpoint, or the head of a thread, and the chain of its parents.

    Newest first; nothing if there is no such thread. ``skip`` passes over as many. The
    walk ends with the first that is not above ``down_to_step``; those above
    ``from_step`` are passed over.
    """

    start: Checkpoint | str
    skip: int = 0
    limit: int | None = None
    down_to_step: int = 0
    from_step: int | None = None


class Saves(Query[Checkpoint], frozen=True, kw_only=True):
    """The checkpoints saved in a family or in one of its threads, by sequence."""

    family: int
    thread: str | None = None
    before: int | None = None
    after: int | None = None
    oldest_first: bool = False
    limit: int | None = None

    def __post_init__(self) -> None:
        check_cursor(self.before)
        check_cursor(self.after)


class Marked(Query[Checkpoint], frozen=True, kw_only=True):
    """A family's checkpoints with a label or, without one, with a tag, newest first."""

    family: int
    label: str | None = None
    tag: str | None = None
    before: int | None = None
    limit: int | None = None


class Matches(Query[Checkpoint], frozen=True, kw_only=True):
    """The checkpoints whose id begins with a prefix, in one family or in all, by id."""

    prefix: str
    family: int | None = None
    after: str = ""
    limit: int = 10


class Threads(Query[ThreadRecord], frozen=True, kw_only=True):
    """The threads, last used first; ``after`` is the cursor of the page before.

    Tombstones and threads that were never saved to are left out unless ``every``, pins
    unless ``every`` or asked for by kind.
    """

    kind: str | None = None
    owner: str | None = None
    agent: str | None = None
    prefix: str | None = None
    family: int | None = None
    after: int | None = None
    limit: int | None = None
    every: bool = False

    def __post_init__(self) -> None:
        check_cursor(self.after)
        for name in ("kind", "owner", "agent", "prefix"):
            check_filter(getattr(self, name), name)


class Moves(Query[Move], frozen=True, kw_only=True):
    """A thread's head moves, saves included, newest first."""

    thread: str
    before: int | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        check_cursor(self.before)


class Entries(Query[Entry], frozen=True, kw_only=True):
    """A thread's journal: of one checkpoint, of the thread itself (""), or all."""

    thread: str
    checkpoint: str | None = None
    key: str | None = None


class Stale(msgspec.Struct, frozen=True):
    """A thread that is not indexed as it is; without a name if it is gone."""

    number: int
    name: str | None


class Outdated(Query[Stale], frozen=True, kw_only=True):
    """All threads with a head that are not indexed as they are, last used first.

    What the index still holds of threads that are gone comes behind them.
    """

    kind: str
    form: int
    owner: str | None = None
    agent: str | None = None


class Scattered(Query[Stale], frozen=True):
    """All threads indexed in more than twice as many stretches as a size allows.

    What the index still holds of threads that are gone comes behind them.
    """

    stretch: int


class Candidate(msgspec.Struct, frozen=True):
    """A thread, and where in it a text may stand; ``None`` means anywhere."""

    thread: ThreadRecord
    where: tuple[range, ...] | None = None


class Candidates(Query[Candidate], frozen=True, kw_only=True):
    """The threads in which a text may stand, last used first.

    Every thread is given that is not indexed as it is, and of the others every stretch
    that holds the ``text``, which is prepared and at least three characters long. It is
    no mistake to give more.
    """

    text: str
    kind: str
    form: int
    owner: str | None = None
    agent: str | None = None
    after: int | None = None
    limit: int | None = None


class Weight(msgspec.Struct, frozen=True):
    """What a family takes: its states as they are stored, with or without segments."""

    family: int
    checkpoints: int
    logical_bytes: int
    segments: int
    stored_bytes: int


class Weights(Query[Weight], frozen=True, kw_only=True):
    """The families with the most stored bytes, heaviest first."""

    limit: int | None = None


# --- index ----------------------------------------------------------------------------


class Indexing(msgspec.Struct, frozen=True, kw_only=True):
    """What the index shall hold of a thread instead of what was ``found`` in it.

    ``texts`` are those of the last stretches; the stretches before are in the index.
    Where something else is found, somebody was faster, and nothing is changed.
    """

    number: int
    found: Indexed
    becomes: Indexed | None
    texts: tuple[str, ...] = ()


# --- prune ----------------------------------------------------------------------------


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


# --- adopt ----------------------------------------------------------------------------


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


# --- lifecycle ------------------------------------------------------------------------


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


Outcome = list[Receipt] | HoldfastError


class BlockingBackend(Backend, Protocol):
    """What a backend has to offer whose coroutines never suspend."""

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> Sequence[Outcome]:
        """Several commits, each as a whole and with its own outcome, in one call."""
        ...


def run(operation: Coroutine[Any, Any, T]) -> T:
    """The result of an operation over a blocking backend, without an event loop."""
    try:
        operation.send(None)
    except StopIteration as finished:
        result: T = finished.value
        return result
    operation.close()
    raise RuntimeError("an operation suspended: its backend is not a blocking one")
