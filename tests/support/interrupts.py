"""Signals to the main thread while it is inside a call, never before or after it."""

from __future__ import annotations

import signal
import sys
import threading
import time

MAIN = threading.main_thread()
# How long a call needs to get to where it waits; nothing tells that from outside.
MOMENT = 0.2


class Interrupt(threading.Thread):
    """Sends a signal to the main thread some time after it entered a function."""

    def __init__(self, function: str, number: int = signal.SIGINT) -> None:
        super().__init__()
        self._function, self._number = function, number

    def run(self) -> None:
        assert MAIN.ident is not None
        while not _is_inside(MAIN.ident, self._function):
            time.sleep(0.001)
        time.sleep(MOMENT)
        signal.pthread_kill(MAIN.ident, self._number)


def _is_inside(thread: int, function: str) -> bool:
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_code.co_name == function:
            return True
        frame = frame.f_back
    return False
