"""Trying again while there is time: after a broken connection, or a lost contention."""

from __future__ import annotations

import time

from holdfast.backends.postgres._conflicts import outrun
from holdfast.backends.postgres._driver import Limit, Lost, Settings, Unreached, broken
from holdfast.errors import Busy, HoldfastError

# As many broken connections as a pool may have are nothing to wait for; then slowly.
BREATH = 0.05


class Trial:
    """The attempts of one call."""

    def __init__(
        self, settings: Settings, limit: Limit, deadline: float | None = None
    ) -> None:
        self.limit = limit
        self.deadline = deadline or time.monotonic() + settings.timeout
        self._settings = settings
        self._count = 0

    def go_on(self, error: Exception) -> float:
        """How long to wait before the next attempt; raises if there is none."""
        is_cut_short = isinstance(error, Lost) and not isinstance(error, Unreached)
        if is_cut_short and self.limit is not Limit.CALL and not self._count:
            # It could take its time until now.
            self.deadline = time.monotonic() + self._settings.timeout
        self._count += 1
        if time.monotonic() > self.deadline:
            raise self._last_word(error) from error
        return BREATH if self._count > self._settings.largest else 0.0

    def _last_word(self, error: Exception) -> HoldfastError:
        if isinstance(error, Lost):
            return broken(error)
        return Busy("the server kept ending the transaction; retry")


def only_try(error: Exception) -> HoldfastError:
    """What a caller is told in whose transaction nothing can be tried again."""
    return broken(error) if isinstance(error, Lost) else outrun()
