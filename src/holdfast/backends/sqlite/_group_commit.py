"""Group commit: the writes of several callers in one transaction, with one fsync."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from functools import partial

import apsw
import msgspec

from holdfast._port import Outcome, Receipt, Write
from holdfast.backends.sqlite._database import Database
from holdfast.backends.sqlite._hooks import Hooks
from holdfast.backends.sqlite._write import SqliteWrite, next_seq
from holdfast.errors import Busy, HoldfastError

LARGEST_GROUP = 256
# Writing so many bytes may take longer than others wait for the lock.
LARGE = 8 << 20
BUSY = "the store is being written to; retry, or raise busy_timeout"


class Ticket(msgspec.Struct):
    """Writes that belong together, and in the end their receipts or their error."""

    writes: Sequence[Write]
    receipts: list[Receipt] = []
    error: HoldfastError | None = None
    done: bool = False


class Caller:
    """A thread that waits for its tickets to be committed.

    Its gate opens when they are done, or when it is its turn to commit.
    """

    __slots__ = ("done", "gate", "leads", "tickets")

    def __init__(self, tickets: list[Ticket]) -> None:
        self.tickets = tickets
        self.done = False
        self.leads = False
        self.gate = threading.Lock()
        self.gate.acquire()


class CommitQueue:
    """Callers that wait while one of them, the leader, commits for several.

    There is no thread of its own. A caller that comes while there is no leader becomes
    the leader. When it is done, it wakes the callers it committed for, and one that
    came later to be the next leader.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._mutex = threading.Lock()
        self._waiting: deque[Caller] = deque()
        self._has_leader = False

    def submit(self, batches: Sequence[Sequence[Write]]) -> list[Outcome]:
        """Have batches committed, each as a whole, by this caller or by another."""
        tickets = [Ticket(writes) for writes in batches]
        self.make(tickets)
        return [ticket.error or ticket.receipts for ticket in tickets]

    def make(self, tickets: list[Ticket]) -> None:
        """Have tickets committed; each has its receipts or its error then."""
        caller = None
        with self._mutex:
            if self._has_leader:
                caller = Caller(tickets)
                self._waiting.append(caller)
            self._has_leader = True
        if caller is not None:
            self._wait(caller)
        if caller is None or not caller.done:
            self._lead(tickets)

    def _wait(self, caller: Caller) -> None:
        try:
            if self._database.acquire(caller.gate):
                return
            if self._withdraw(caller):
                raise Busy(BUSY)  # noqa: TRY301 - nothing of it has to be undone
            # The leader is committing these tickets right now: the outcome is near.
            caller.gate.acquire()
        except BaseException:
            if not self._withdraw(caller) and caller.leads:
                self._hand_over()
            raise

    def _withdraw(self, caller: Caller) -> bool:
        """Stop waiting; False if a leader has taken the tickets already."""
        with self._mutex:
            if caller not in self._waiting:
                return False
            self._waiting.remove(caller)
            return True

    def _lead(self, own: list[Ticket]) -> None:
        """Commit for this caller and for those that wait."""
        group = self._take_waiting() if self._waiting else []
        tickets = [*own]
        for caller in group:
            tickets += caller.tickets
        try:
            self._database.exclusively(
                partial(self._commit, tickets),
                (write for ticket in tickets for write in ticket.writes),
            )
        except HoldfastError as error:
            for ticket in tickets:
                if not ticket.done:
                    ticket.error = error
        except BaseException:
            # Interrupted and rolled back: the others' tickets still have to be made.
            with self._mutex:
                self._waiting.extendleft(reversed(group))
            group = []
            raise
        finally:
            self._hand_over()
            for caller in group:
                caller.done = True
                caller.gate.release()

    def _take_waiting(self) -> list[Caller]:
        with self._mutex:
            count = min(len(self._waiting), LARGEST_GROUP - 1)
            return [self._waiting.popleft() for _ in range(count)]

    def _commit(self, tickets: Sequence[Ticket], db: apsw.Connection) -> None:
        size, hooks = _size_of(tickets), self._database.hooks
        if size < LARGE:
            commit_group(tickets, hooks, db)
            return
        with self._database.announced(size):
            commit_group(tickets, hooks, db)

    def _hand_over(self) -> None:
        """Make the caller that has waited longest the leader, if one waits."""
        with self._mutex:
            self._has_leader = bool(self._waiting)
            if self._has_leader:
                following = self._waiting.popleft()
                following.leads = True
                following.gate.release()


def _size_of(tickets: Sequence[Ticket]) -> int:
    """The bytes of the segments that have to be written."""
    writes = (write for ticket in tickets for write in ticket.writes)
    return sum([len(segment.data) for write in writes for segment in write.segments])


def commit_group(tickets: Sequence[Ticket], hooks: Hooks, db: apsw.Connection) -> None:
    """Commit tickets in one transaction, each as a whole or with its error.

    Most failures are found by the first statement, before anything is changed, so there
    is no savepoint for each ticket. After one of the others, which are rare, nothing is
    committed, and each ticket gets a transaction of its own.
    """
    try:
        with hooks.transaction(db) as cursor:
            seq = next_seq(cursor)
            for ticket in tickets:
                seq = _apply(cursor, ticket, seq, hooks)
            applied = time.perf_counter()
    except _SpoiledError:
        if len(tickets) > 1:
            for ticket in tickets:
                commit_group([ticket], hooks, db)
    else:
        _report(tickets, time.perf_counter() - applied)
    for ticket in tickets:
        ticket.done = True


def _report(tickets: Sequence[Ticket], seconds: float) -> None:
    """Tell the callers that asked for it how their commit went."""
    for ticket in tickets:
        for write in ticket.writes:
            if write.report is not None and ticket.error is None:
                write.report(len(tickets), seconds)


def _apply(cursor: apsw.Cursor, ticket: Ticket, seq: int, hooks: Hooks) -> int:
    db, start = cursor.connection, seq
    before = db.total_changes()
    ticket.error = None
    ticket.receipts.clear()
    try:
        for write in hooks.check_writes(db, ticket.writes):
            applied = SqliteWrite(cursor, write, seq)
            ticket.receipts.append(applied.receipt())
            seq = applied.last + 1
    except HoldfastError as error:
        ticket.error = error
        if db.total_changes() != before:
            raise _SpoiledError from error
        return start
    return seq


class _SpoiledError(Exception):
    """A ticket failed after it had changed something."""
