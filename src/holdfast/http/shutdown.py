"""Ctrl-C and SIGTERM stop a server in the same way as its client does."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Generator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def stopping(stop: Callable[[], None]) -> Generator[list[int]]:
    """Call ``stop`` at the first signal; gives the list of signals that came.

    A second signal has its usual effect, so that the user can end a slow stop.
    """
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        came.append(number)
        for known, usual in before.items():
            signal.signal(known, usual)
        stop()

    if threading.current_thread() is not threading.main_thread():
        yield came  # only the main thread can receive signals
        return
    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield came
    finally:
        for known, usual in before.items():
            signal.signal(known, usual)
