"""A worker as its parent sees it: a process that is asked, and may be killed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Self

# A worker that has not answered for so many seconds is given up.
PATIENCE = 120.0
BLOCK = 65_536
ROOT = str(Path(__file__).resolve().parents[2])


class Worker:
    """One process that runs one store; killed at the end of a ``with`` block.

    A worker that fails, or that does not answer in time, raises `ChildProcessError`
    with what it said last.
    """

    def __init__(self, store: str, folder: str) -> None:
        # Workers find this package wherever they are started.
        importable = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
        self._log = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - see __exit__
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "benchmarks.contest.worker", store],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            # What it writes beside its stores goes away with the folder of the run.
            env={**os.environ, "TMPDIR": folder, "PYTHONPATH": importable},
            # Ctrl-C is for the parent only, which then kills the whole session.
            start_new_session=True,
            bufsize=0,
        )
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for stream in (self._input, self._output, self._log):
            with contextlib.suppress(BrokenPipeError):  # what it did not read
                stream.close()

    def ask(self, *command: object, answers: int = 1) -> list[str]:
        """Send a command, and wait for so many lines."""
        self.send(*command)
        return self.answers(answers)

    def send(self, *command: object) -> None:
        """Send a command that will be answered."""
        line = "\t".join(map(str, command))
        with contextlib.suppress(BrokenPipeError):  # then no answer comes either
            self._input.write(f"{line}\n".encode())
            self._input.flush()

    def answers(self, count: int = 1) -> list[str]:
        """The next lines."""
        return [self._line() for _ in range(count)]

    def interrupt(self, *command: object, answers: int) -> int:
        """Kill the worker after some answers to a command: how many came in all."""
        self.ask(*command, answers=answers)
        self.kill()
        # An answer that was written before the kill was given, too.
        rest = self._unread + self._output.read()
        return answers + rest.count(b"\n")

    def kill(self) -> None:
        """End the worker and what it started, at once."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    @property
    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def _line(self) -> str:
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self._output], [], [], PATIENCE)
            block = os.read(self._output.fileno(), BLOCK) if ready else b""
            if not block:
                raise self._failure()
            self._unread += block
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def _failure(self) -> ChildProcessError:
        self.kill()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return ChildProcessError(lines[-1] if lines else "it did not answer")
