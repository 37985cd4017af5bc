"""What was measured of a store, and how it compares with ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from benchmarks.contest.peers import Peer

# So many turns stand for the beginning and for the end of a conversation, of a shorter
# one a third of it.
EDGE = 50
# Ratios of times this near to 1 are noise.
NOISE = 0.05

Ratios = dict[str, float]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured; no other store gets more than so many seconds and bytes.

    A store that needs more has stopped being usable, and what was measured until then
    is reported. Ours go on, so that there is something to compare with. ``rounds`` is
    how often a process is killed, and how often everything is loaded in a new one. With
    ``twice``, the stores go on to twice as many turns.
    """

    turns: int = 500
    rounds: int = 3
    seconds: float = 60.0
    bytes: int = 1_000_000_000
    twice: bool = True


FULL = Size()
QUICK = Size(turns=100, rounds=1, seconds=2.0, twice=False)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A conversation that was saved turn by turn; times in seconds.

    ``stopped`` says why it has fewer turns than it should have.
    """

    turns: int
    raw_bytes: int
    disk_bytes: int
    first_turns: float
    last_turns: float
    stopped: str = ""

    @property
    def growth(self) -> float:
        """What a turn costs at the end against the beginning."""
        return self.last_turns / self.first_turns

    @property
    def ratio(self) -> float:
        """Bytes on disk against the conversation itself."""
        return self.disk_bytes / self.raw_bytes

    def ratios(self, ours: Recorded) -> Ratios:
        """This against ours; at least so much if this one stopped before."""
        return {
            "on disk": self.disk_bytes / ours.disk_bytes,
            "a turn": self.last_turns / ours.last_turns,
        }


@dataclass(frozen=True, slots=True)
class Figures:
    """Everything that was measured of one store; times in seconds.

    ``lost`` are turns that were acknowledged before a kill and not found after it;
    ``after_kill`` says what kept the store from being read then.
    """

    peer: Peer
    recorded: Recorded
    first_load: float
    last_ten: float
    acknowledged: int
    lost: int
    after_kill: str = ""
    twice: Recorded | None = None

    def ratios(self, ours: Figures) -> Ratios:
        """Each figure against ours: above 1, ours is better."""
        return {
            **self.recorded.ratios(ours.recorded),
            "first load": self.first_load / ours.first_load,
            "last ten": self.last_ten / ours.last_ten,
        }


def recorded(samples: list[float], raw: int, disk: int, stopped: str) -> Recorded:
    """A conversation by the seconds that each turn took."""
    edge = max(1, min(EDGE, len(samples) // 3))
    first, last = median(samples[:edge]), median(samples[-edge:])
    return Recorded(len(samples), raw, disk, first, last, stopped)


def losses(measured: Mapping[str, Figures]) -> Iterator[tuple[Figures, Ratios]]:
    """The stores that do better than ours, and in what.

    A store that stopped is not among them: with fewer turns, less is no achievement.
    """
    for figures in measured.values():
        ours = measured.get(figures.peer.ours)
        if figures.peer.is_ours or figures.recorded.stopped:
            continue
        if ours is not None:
            better = dict(_better(figures.ratios(ours)))
            if better:
                yield figures, better


def _better(ratios: Ratios) -> Iterator[tuple[str, float]]:
    for name, ratio in ratios.items():
        if ratio < (1 if name == "on disk" else 1 - NOISE):
            yield name, ratio


def broken_promises(measured: Iterable[Figures]) -> list[Figures]:
    """Ours that lost what they had acknowledged: none, or there is a defect."""
    return [figures for figures in measured if figures.peer.is_ours and figures.lost]
