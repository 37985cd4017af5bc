"""Runs all stores through the same conversation, in turns."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from benchmarks.contest.entrant import Entrant
from benchmarks.contest.figures import Figures, Size
from benchmarks.contest.peers import Peer
from benchmarks.contest.process import Worker

Progress = Callable[[int, int], None]
Pairs = list[tuple[Entrant, Worker]]


class Contest:
    """One run over all stores, within a folder; ``progress`` gets (done, total)."""

    def __init__(
        self, peers: Sequence[Peer], folder: str, size: Size, progress: Progress
    ) -> None:
        self._entrants = [Entrant(peer, folder) for peer in peers]
        self._folder = folder
        self._size = size
        self._progress = progress
        self._total = len(peers) * _steps(size)
        self._done = 0

    def run(self) -> tuple[dict[str, Figures], dict[str, str]]:
        """What was measured by the key of the store, and what could not be, and why."""
        for number in range(self._size.rounds):
            with self._workers() as workers:
                if not number:
                    self._record(workers, self._size.turns, _set_recorded)
                self._each(workers, Entrant.kill)
            with self._workers() as workers:
                self._each(workers, Entrant.read)
                self._each(workers, Entrant.count_lost)
        if self._size.twice:
            with self._workers() as workers:
                self._record(workers, 2 * self._size.turns, _set_twice)
        figures = {entrant.peer.key: entrant.figures() for entrant in self._sound()}
        return figures, {e.peer.key: e.problem for e in self._entrants if e.problem}

    def _record(
        self, workers: Pairs, turns: int, keep: Callable[[Entrant, Worker], None]
    ) -> None:
        """Save up to so many turns, one in each store before the next."""
        self._each(workers, Entrant.open)
        while going := [w for w in workers if w[0].goes_on(turns, self._size)]:
            self._each(going, Entrant.save)
            workers.reverse()
        self._each(workers, keep)

    def _each(self, workers: Pairs, work: Callable[[Entrant, Worker], None]) -> None:
        for entrant, worker in workers:
            self._attempt(entrant, partial(work, entrant, worker))

    @contextmanager
    def _workers(self) -> Generator[Pairs]:
        """A new process for every store that is sound, all of them ready.

        They import at the same time, and nothing is imported while one is measured.
        """
        with ExitStack() as stack:
            workers = [
                (entrant, stack.enter_context(Worker(entrant.peer.opens, self._folder)))
                for entrant in self._sound()
            ]
            for _, worker in workers:
                worker.send("warm")
            for entrant, worker in workers:
                self._attempt(entrant, worker.answers)
            yield workers

    def _sound(self) -> list[Entrant]:
        return [entrant for entrant in self._entrants if not entrant.problem]

    def _attempt(self, entrant: Entrant, work: Callable[[], object]) -> None:
        """Do something with a store, unless it has failed; note if it fails."""
        if entrant.problem:
            return
        try:
            work()
        except ChildProcessError as error:
            entrant.problem = str(error)
        self._done += 1
        self._progress(self._done, self._total)


def _steps(size: Size) -> int:
    """What is attempted with a store that neither fails nor stops."""
    # Opened, saved turn by turn and closed.
    recording = size.turns + 2
    # Two workers are started, one is killed, the other reads and counts.
    rounds = 5 * size.rounds
    return recording * (2 if size.twice else 1) + rounds + size.twice


def _set_recorded(entrant: Entrant, worker: Worker) -> None:
    entrant.recorded = entrant.close(worker)


def _set_twice(entrant: Entrant, worker: Worker) -> None:
    entrant.twice = entrant.close(worker)
