"""A thread that deletes expired items at intervals."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, wait

from holdfast.adapters.langgraph._results import Sweeping
from holdfast.errors import Closed, HoldfastError


class Sweeper:
    """Sweeps every so many minutes until it is stopped or the store is closed."""

    def __init__(self, sweep: Callable[[], object], minutes: float) -> None:
        self._sweep, self._seconds = sweep, minutes * 60
        self._stopped = threading.Event()
        self.ended = Sweeping()
        self.ended.add_done_callback(self._on_end)
        # A program may end without stopping it.
        threading.Thread(target=self._run, name="ttl-sweeper", daemon=True).start()

    def stop(self) -> None:
        """Start no more sweeps; a running sweep may go on."""
        self._stopped.set()

    def wait(self, timeout: float | None) -> bool:
        """True if the last sweep ended within so many seconds."""
        return not wait([self.ended], timeout).not_done

    def _on_end(self, ended: Future[None]) -> None:
        if ended.cancelled():
            self.stop()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            try:
                self._sweep()
            except Closed:
                break
            except HoldfastError:
                # If the store is busy or unreachable, the next sweep tries again.
                continue
        with contextlib.suppress(InvalidStateError):  # the caller has cancelled it
            self.ended.set_result(None)
