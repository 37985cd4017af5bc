"""A row of the scorecard: a promise, how often it is tried, and how."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from holdfast.testing.trials.target import Target

Effort: TypeAlias = Literal["quick", "full"]

FILE, FOLDER, SERVER = "file", "dir", "postgresql"
ALL = (FILE, FOLDER, SERVER)
# In a folder or on a server a trial takes about so many times as long as in a file,
# and a full run makes fewer.
SLOWNESS = 4


class NotRun(Exception):
    """A row cannot be run here; the text says why."""


@dataclass(frozen=True, slots=True)
class Trials:
    """How often a promise was tried, and each time that it did not hold."""

    count: int
    wrong: list[str]
    note: str = ""


def _no_progress(_: float) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Task:
    """What a row is given: where to try, how often, and a source of chance.

    ``progress`` is to be called now and then with the share that is done.
    """

    target: Target
    count: int
    chance: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - repeatable trials
    progress: Callable[[float], None] = _no_progress

    def done(self, count: int) -> None:
        """Report how many of the trials are done."""
        self.progress(min(1.0, count / self.count))


@dataclass(frozen=True, slots=True)
class Row:
    """A promise of the scorecard.

    ``quick`` and ``full`` are how many trials are wanted, of what ``unit`` says.
    ``kinds`` are the kinds of stores to which it applies; a row for all of them is
    also for backends of other packages.
    """

    number: int
    name: str
    promise: str
    unit: str
    quick: int
    full: int
    run: Callable[[Task], Trials]
    kinds: tuple[str, ...] = (FILE, FOLDER)

    def applies_to(self, kind: str) -> bool:
        """Whether it can be run on a kind of store."""
        return kind in self.kinds or (kind not in ALL and self.kinds == ALL)

    def wanted(self, effort: Effort, kind: str) -> int:
        """How many trials are wanted on a kind of store."""
        if effort == "quick":
            return self.quick
        is_slower = FILE in self.kinds and kind != FILE
        return -(-self.full // SLOWNESS) if is_slower else self.full
