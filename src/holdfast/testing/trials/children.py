"""Forked children of a plain single-threaded program, and what they report."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeAlias

# The function by which a child reports something to its parent.
Tell: TypeAlias = Callable[[object], None]


class Child:
    """A forked child that writes lines of JSON to its parent."""

    def __init__(self, work: Callable[[Tell], None]) -> None:
        self.status: int | None = None
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            _run(work, writing)
        os.close(writing)
        self._reports = os.fdopen(reading)

    def fileno(self) -> int:
        """The descriptor of its reports, for `select` over several children."""
        return self._reports.fileno()

    def report(self) -> Any:
        """The next report; ``None`` when the child has gone without one."""
        line = self._reports.readline()
        return json.loads(line) if line.endswith("\n") else None

    def reports(self) -> Iterator[Any]:
        """The reports up to the end of the child."""
        while (report := self.report()) is not None:
            yield report

    def kill(self) -> None:
        """End it as a crash does."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> list[Any]:
        """The reports that are left, once the child is gone."""
        left = list(self.reports())
        self._reports.close()
        self.status = os.waitpid(self.pid, 0)[1]
        return left

    @property
    def was_killed(self) -> bool:
        """True if SIGKILL ended the child."""
        assert self.status is not None
        by = os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else None
        return by == signal.SIGKILL

    def finish(self) -> list[Any]:
        """Wait for the child; raises unless it ended with status 0."""
        left = self.wait()
        if self.status != 0:
            raise RuntimeError(f"a child ended with status {self.status}")
        return left


def _run(work: Callable[[Tell], None], writing: int) -> NoReturn:
    def tell(report: object) -> None:
        os.write(writing, (json.dumps(report) + "\n").encode())

    try:
        work(tell)
    except BaseException:  # noqa: BLE001 - nothing may come back from a child
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


class Gate:
    """Keeps children waiting until all of them are ready."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._ready, self._arrived = os.pipe()
        self._go, self._opened = os.pipe()

    def wait(self) -> None:
        """Called by a child: arrive, and go on when all may."""
        os.close(self._opened)
        os.write(self._arrived, b"x")
        # When all children have closed it, the parent reads the end of the pipe, also
        # if one of them ended before it arrived.
        os.close(self._arrived)
        os.read(self._go, 1)

    def open(self) -> None:
        """Called by the parent: let them go when all have arrived."""
        os.close(self._arrived)
        arrived = 0
        while arrived < self._count:
            now = len(os.read(self._ready, self._count))
            if now == 0:
                raise RuntimeError("a child ended before it was ready")
            arrived += now
        os.close(self._opened)
