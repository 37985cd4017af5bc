"""Group commit: the writes of several callers in one transaction, with one fsync."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from functools import partial

import apsw
import msgspec

from holdfast._port import Outcome, Receipt, Write
from holdfast.backends.sqlite import _write
from holdfast.backends.sqlite._database import Database
from holdfast.backends.sqlite._hooks import Hooks
from holdfast.errors import Busy, HoldfastError

LARGEST_GROUP = 256
# Writing so many bytes may take longer than others wait for the lock.
LARGE = 8 << 20
# How often, in seconds, a caller looks whether the leader with its tickets is there.
LOOK = 0.5
BUSY = "the store is being written to; retry, or raise busy_timeout"


class Ticket(msgspec.Struct):
    """Writes that belong together, and in the end their receipts or their error."""

    writes: Sequence[Write]
    receipts: list[Receipt] = []
    error: HoldfastError | None = None
    # The number of the last change that was stored, 0 for none.
    last: int = 0
    done: bool = False

    def report(self, together: int, seconds: float) -> None:
        """Tell the callers that asked for it how their commit went."""
        for write in self.writes:
            if write.report is not None:
                write.report(together, seconds)


class Leader:
    """Is there as long as the call of a leader is under way, however it ends.

    A signal's handler can raise between any two calls of the main thread, also in what
    makes another caller the leader.
    """

    __slots__ = ("__weakref__",)


class Caller(Leader):
    """A thread that waits for its tickets to be committed.

    Its gate opens when they are done, or when it is its turn to commit. ``leader`` is
    who has taken the tickets.
    """

    __slots__ = ("done", "gate", "leader", "leads", "tickets")

    def __init__(self, tickets: list[Ticket]) -> None:
        self.tickets = tickets
        self.done = False
        self.leads = False
        self.leader = NOBODY
        self.gate = threading.Lock()
        self.gate.acquire()


NOBODY: weakref.ref[Leader] = weakref.ref(Leader())


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
        self._leader = NOBODY
        # The last commit's connection, SQLite's count of the commits that this
        # connection has seen from all processes, and the number of the next change.
        self._left: tuple[apsw.Connection | None, int, int] = None, 0, 0

    def submit(self, batches: Sequence[Sequence[Write]]) -> list[Outcome]:
        """Have batches committed, each as a whole, by this caller or by another."""
        tickets = [Ticket(writes) for writes in batches]
        self.make(tickets)
        return [ticket.error or ticket.receipts for ticket in tickets]

    def make(self, tickets: list[Ticket]) -> None:
        """Have tickets committed; each has its receipts or its error then."""
        caller = None
        leader = Leader()
        with self._mutex:
            if self._leader() is None:
                self._leader = weakref.ref(leader)
            else:
                caller = Caller(tickets)
                self._waiting.append(caller)
        if caller is not None:
            self._wait(caller)
        if caller is None or not caller.done:
            self._lead(tickets, caller or leader)

    def _wait(self, caller: Caller) -> None:
        try:
            if self._database.acquire(caller.gate):
                return
            if self._withdraw(caller):
                raise Busy(BUSY)  # noqa: TRY301 - nothing of it has to be undone
            # The leader is committing these tickets right now: the outcome is near.
            while not caller.gate.acquire(timeout=LOOK):
                if caller.leader() is None:  # it ended without a word
                    caller.done = all(ticket.done for ticket in caller.tickets)
                    return
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

    def _lead(self, own: list[Ticket], leader: Leader) -> None:
        """Commit for this caller and for those that wait."""
        group = self._take_waiting(leader) if self._waiting else ()
        tickets = own
        for caller in group:
            tickets = tickets + caller.tickets
        try:
            self._commit(tickets)
        except HoldfastError as error:
            for ticket in tickets:
                if not ticket.done:
                    ticket.error = error
        except BaseException:
            # Interrupted and rolled back: the others' tickets still have to be made.
            with self._mutex:
                self._waiting.extendleft(reversed(group))
            group = ()
            raise
        finally:
            self._hand_over()
            for caller in group:
                caller.done = True
                caller.gate.release()

    def _take_waiting(self, leader: Leader) -> Sequence[Caller]:
        with self._mutex:
            count = min(len(self._waiting), LARGEST_GROUP - 1)
            group = [self._waiting.popleft() for _ in range(count)]
            for caller in group:
                caller.leader = weakref.ref(leader)
            return group

    def _commit(self, tickets: list[Ticket]) -> None:
        # Most often there is one ticket, whose writes need not be copied.
        writes = tickets[0].writes
        if len(tickets) > 1:
            writes = [write for ticket in tickets for write in ticket.writes]
        size = 0
        for write in writes:
            for segment in write.segments:
                size += len(segment.data)
        commit = (
            self._commit_group if size < LARGE else partial(self._commit_large, size)
        )
        self._database.exclusively(partial(commit, tickets), writes)

    def _commit_large(
        self, size: int, tickets: Sequence[Ticket], db: apsw.Connection
    ) -> None:
        with self._database.announced(size):
            self._commit_group(tickets, db)

    def _commit_group(self, tickets: Sequence[Ticket], db: apsw.Connection) -> None:
        """Commit tickets in one transaction, each as a whole or with its error.

        Most failures are found by the first statement, before anything is changed, so
        there is no savepoint for each ticket. After one of the others, which are rare,
        nothing is committed, and each ticket gets a transaction of its own. If it is
        called again after a repair of the file, it leaves out what is done.
        """
        if tickets[0].done:
            tickets = [ticket for ticket in tickets if not ticket.done]
        seconds = 0.0
        try:
            seconds = self._commit_together(tickets, db)
        except _SpoiledError:
            if len(tickets) > 1:
                for ticket in tickets:
                    self._commit_group([ticket], db)
                return
        for ticket in tickets:
            ticket.done = True
            if ticket.error is None:
                ticket.report(len(tickets), seconds)

    def _commit_together(self, tickets: Sequence[Ticket], db: apsw.Connection) -> float:
        """Commit tickets in one transaction; gives how long making it durable took."""
        hooks, last = self._database.hooks, 0
        before, seen, first = self._left
        with hooks.transaction(db) as cursor:
            # The number is asked for only if others may have taken it.
            if before is not db or db.data_version() != seen:
                first = _write.next_seq(cursor)
            seq = first
            for ticket in tickets:
                seq = _apply(cursor, ticket, seq, hooks)
                last = ticket.last or last
            applied = time.perf_counter()
        self._left = db, db.data_version(), last + 1 if last else first
        if last:
            hooks.acknowledge(db, last)
        return time.perf_counter() - applied

    def _hand_over(self) -> None:
        """Make the caller that has waited longest the leader, if one waits."""
        with self._mutex:
            self._leader = NOBODY
            if self._waiting:
                following = self._waiting.popleft()
                following.leads = True
                self._leader = weakref.ref(following)
                following.gate.release()


def _apply(cursor: apsw.Cursor, ticket: Ticket, seq: int, hooks: Hooks) -> int:
    db, start = cursor.connection, seq
    before = db.total_changes()
    ticket.error = None
    ticket.last = 0
    ticket.receipts.clear()
    try:
        for write in hooks.check_writes(db, ticket.writes):
            applied = _write.SqliteWrite(cursor, write, seq)
            ticket.receipts.append(applied.receipt())
            seq = applied.last + 1
            if applied.is_stored:
                ticket.last = applied.last
    except HoldfastError as error:
        ticket.error = error
        ticket.last = 0
        if db.total_changes() != before:
            raise _SpoiledError from error
        return start
    return seq


class _SpoiledError(Exception):
    """A ticket failed after it had changed something."""
