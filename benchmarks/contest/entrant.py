"""One store during a run: where it is, and what was measured of it so far."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache
from statistics import median

from benchmarks.contest.disk import tree_size
from benchmarks.contest.figures import Figures, Recorded, Size, recorded
from benchmarks.contest.peers import Peer
from benchmarks.contest.process import Worker
from benchmarks.contest.units import volume
from benchmarks.contest.workload import growing, json_size

MESSAGES_A_TURN = 2
# A worker that is to be killed is asked for more than it can save until then.
ENDLESS = 1_000_000
UNTIL_KILL = 10
# After so many turns the size on disk is looked at.
GLANCE = 10


@dataclass(slots=True)
class Entrant:
    """A store in a run; ``problem`` says why it is not measured any further."""

    peer: Peer
    folder: str
    samples: list[float] = field(default_factory=list[float])
    loads: list[float] = field(default_factory=list[float])
    tails: list[float] = field(default_factory=list[float])
    stopped: str = ""
    recorded: Recorded | None = None
    twice: Recorded | None = None
    acknowledged: list[int] = field(default_factory=list[int])
    lost: int = 0
    after_kill: str = ""
    problem: str = ""

    # --- saving -----------------------------------------------------------------------

    def open(self, worker: Worker) -> None:
        """Open the conversation, to go on with it."""
        worker.ask("open", self._path(), len(self.samples))

    def goes_on(self, turns: int, size: Size) -> bool:
        """Whether there is more to save, and time and space for it."""
        if self.problem or self.stopped or len(self.samples) >= turns:
            return False
        if self.peer.is_ours:
            return True
        if sum(self.samples) > size.seconds:
            self.stopped = f"after {size.seconds:.0f} s"
        elif not len(self.samples) % GLANCE and self._taken() > size.bytes:
            self.stopped = f"at {volume(self._taken())}"
        return not self.stopped

    def save(self, worker: Worker) -> None:
        """Save the next turn."""
        self.samples += map(float, worker.ask("save", 1))

    def close(self, worker: Worker) -> Recorded:
        """Close the conversation: what it is on disk now."""
        worker.ask("close")
        raw = raw_bytes(len(self.samples))
        return recorded(self.samples, raw, self._taken(), self.stopped)

    def kill(self, worker: Worker) -> None:
        """Kill a worker while it saves another conversation."""
        worker.ask("open", self._killed_path(), 0)
        count = worker.interrupt("save", ENDLESS, answers=UNTIL_KILL)
        self.acknowledged.append(count)

    # --- reading ----------------------------------------------------------------------

    def read(self, worker: Worker) -> None:
        """Load all messages, then open the store again for the last ones."""
        seconds, found = _read(worker, "load", self._path())
        expected = MESSAGES_A_TURN * len(self.samples)
        if found != expected:
            self.problem = f"it returned {found} of {expected} messages"
        self.loads.append(seconds)
        self.tails.append(_read(worker, "last", self._path())[0])

    def count_lost(self, worker: Worker) -> None:
        """Look for what the worker that was killed last had acknowledged."""
        try:
            found = _read(worker, "load", self._killed_path(newest=True))[1]
        except ChildProcessError as error:
            found, self.after_kill = 0, str(error)
        self.lost += max(0, self.acknowledged[-1] - found // MESSAGES_A_TURN)

    def figures(self) -> Figures:
        """What was measured, if there was no problem."""
        assert self.recorded is not None
        return Figures(
            peer=self.peer,
            recorded=self.recorded,
            first_load=median(self.loads),
            last_ten=median(self.tails),
            acknowledged=sum(self.acknowledged),
            lost=self.lost,
            after_kill=self.after_kill,
            twice=self.twice,
        )

    def _taken(self) -> int:
        return tree_size(os.path.dirname(self._path()))

    def _killed_path(self, *, newest: bool = False) -> str:
        return self._path(f"-killed-{len(self.acknowledged) - newest}")

    def _path(self, name: str = "") -> str:
        """Where a conversation is, in a folder of its own."""
        folder = os.path.join(self.folder, f"{self.peer.key}{name}")
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, "chat")


def _read(worker: Worker, command: str, path: str) -> tuple[float, int]:
    [answer] = worker.ask(command, path)
    seconds, found = answer.split()
    return float(seconds), int(found)


@cache
def raw_bytes(turns: int) -> int:
    """The conversation itself after so many turns, as JSON."""
    *_, last = growing(turns)
    return json_size(last.messages)
