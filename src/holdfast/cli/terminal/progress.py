"""Progress of long work on standard error: a bar on a terminal, else lines."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:  # an extra
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

QUIET_SECONDS = 1.0
LINE_SECONDS = 5.0


class ProgressReport:
    """A callback for (done, total); prints nothing in the first second."""

    def __init__(self, what: str, *, silent: bool) -> None:
        self._what = what
        self._silent = silent
        self._next = time.monotonic() + QUIET_SECONDS
        self._bar: tuple[Bar, TaskID] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar[0].stop()

    def __call__(self, done: int, total: int) -> None:
        if self._silent or time.monotonic() < self._next:
            return
        if sys.stderr.isatty():
            self._draw(done, total)
        else:
            self._next = time.monotonic() + LINE_SECONDS
            sys.stderr.write(f"{self._what}: {done} of {total}\n")

    def _draw(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = _started(self._what, total)
        if self._bar is None:
            self._silent = True
            return
        bar, task = self._bar
        bar.update(task, completed=done, total=total)


def _started(what: str, total: int) -> tuple[Bar, TaskID] | None:
    try:
        from rich.console import Console  # noqa: PLC0415 - only for a terminal
        from rich.progress import Progress as Bar  # noqa: PLC0415 - likewise
    except ImportError:
        return None
    bar = Bar(console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=total)
    bar.start()
    return bar, task
