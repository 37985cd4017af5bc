"""The agent as a child process, seen from its parent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from demo.agent import Event

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Worker:
    """An agent at work; it waits at each event until the next one is asked for.

    So a kill between two events hits exactly there, on any machine, without sleeping.
    """

    def __init__(self, path: str, ledger: str, program: str = "demo.agent") -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", program, path, ledger],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C is for the parent; the child sees its pipe end
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def events(self) -> Iterator[Event]:
        """What the agent reports; asking for more lets it go on."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = Event(**json.loads(line))
            yield event
            self._process.stdin.write("go on\n")
            self._process.stdin.flush()

    def kill(self) -> int:
        """SIGKILL: the process cannot catch it, flush or tidy up. The exit status."""
        self._process.kill()
        return self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.__exit__(kind, error, trace)
