"""A clock and ids that a test controls."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import count
from threading import Lock

MIDNIGHT = 1_700_006_400_000_000  # 2023-11-15 00:00 UTC, a Wednesday


class FakeClock:
    """A clock for `holdfast.open` that stands still until the test moves it.

    ``now`` is in microseconds UTC and can be set, to an earlier time as well.
    """

    def __init__(self, now: int = MIDNIGHT) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, by: timedelta) -> None:
        """Go forward, or back if ``by`` is negative."""
        self.now += by // timedelta(microseconds=1)


def ids(prefix: str = "id-") -> Callable[[], str]:
    """A source of ids for `holdfast.open`: the same in every run, each one once."""
    numbers = count(1)
    lock = Lock()

    def new_id() -> str:
        with lock:
            return f"{prefix}{next(numbers):06d}"

    return new_id
