"""The search for the first bad item of a sequence, whose good items come first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

Verdict = Literal["good", "bad", "skip"]


class Outcome(NamedTuple):
    """The index of the first bad item; ``unsure`` are earlier indexes not judged."""

    first_bad: int
    unsure: tuple[int, ...]


def first_bad(bad: int, judge: Callable[[int], Verdict]) -> Outcome:
    """The first bad item; the item at index ``bad`` is known to be bad.

    An item that cannot be judged is skipped, and its neighbours are judged instead.
    """
    good = -1
    skipped: set[int] = set()
    while candidates := [n for n in range(good + 1, bad) if n not in skipped]:
        middle = (good + bad) / 2
        index = min(candidates, key=lambda candidate: abs(candidate - middle))
        verdict = judge(index)
        if verdict == "skip":
            skipped.add(index)
        elif verdict == "bad":
            bad = index
        else:
            good = index
    return Outcome(bad, tuple(sorted(n for n in skipped if good < n < bad)))
