"""Ending when told to: Ctrl-C and termination stop a server as its client would."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Generator
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def stopping(stop: Callable[[], None]) -> Generator[list[int]]:
    """Call ``stop`` at the first signal to end; gives the list of those that came.

    A second one has its usual effect: whoever is impatient is not kept waiting.
    """
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        came.append(number)
        for known, usual in before.items():
            signal.signal(known, usual)
        stop()

    if threading.current_thread() is not threading.main_thread():
        yield came  # only the main thread is told of signals
        return
    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield came
    finally:
        for known, usual in before.items():
            signal.signal(known, usual)
