"""The search for the first bad one in a line of good ones and then bad ones, pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

Verdict = Literal["good", "bad", "skip"]


class Outcome(NamedTuple):
    """The place of the first bad one; ``unsure`` are places before it not judged."""

    first_bad: int
    unsure: tuple[int, ...]


def first_bad(bad: int, judge: Callable[[int], Verdict]) -> Outcome:
    """The first bad place up to ``bad``, which is known to be; before 0 all is good.

    What cannot be judged is passed over for its neighbours.
    """
    good = -1
    skipped: set[int] = set()
    while candidates := [n for n in range(good + 1, bad) if n not in skipped]:
        middle = (good + bad) / 2
        place = min(candidates, key=lambda candidate: abs(candidate - middle))
        verdict = judge(place)
        if verdict == "skip":
            skipped.add(place)
        elif verdict == "bad":
            bad = place
        else:
            good = place
    return Outcome(bad, tuple(sorted(n for n in skipped if good < n < bad)))
