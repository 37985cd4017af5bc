"""What one store of a framework took, and telling it to the process that started us."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from time import perf_counter, process_time

import orjson


@dataclass
class Measured:
    """What a store took for a conversation; times in seconds, the size in bytes.

    ``turns`` are by the clock, with the wait for the disk; ``worked`` is the processor
    time of the same turns, which says more on a machine that is busy with other things.
    ``lost`` is how many of a hundred updates of two writers are gone afterwards,
    although the store did not refuse them.
    """

    name: str
    turns: list[float] = field(default_factory=list)
    worked: list[float] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    size: int = 0
    lost: int | None = None

    @contextmanager
    def turn(self) -> Generator[None]:
        """Measures one turn."""
        began, worked = perf_counter(), process_time()
        yield
        self.turns.append(perf_counter() - began)
        self.worked.append(process_time() - worked)


def main(measure: Callable[[str, int], tuple[Measured, list[Measured]]]) -> None:
    """Measure in the folder and for the turns of the command line, and tell it."""
    folder, turns = sys.argv[1:]
    ours, theirs = measure(folder, int(turns))
    told = {"ours": asdict(ours), "theirs": [asdict(one) for one in theirs]}
    sys.stdout.buffer.write(orjson.dumps(told))
