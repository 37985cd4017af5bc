"""Runs the programs of tests/programs, which kill processes or run many of them."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
from typing import IO, Any

import pytest

from support.effort import QUICK
from support.folders import PROGRAMS, TESTS

# So that a program finds `support`.
PATHS = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
LONGEST_STATUS = 16


class Program:
    """A process that has imported a program, and runs it in forks of its own.

    To start the interpreter and to import a framework takes most of the time of a run.
    """

    def __init__(self, name: str) -> None:
        self._calling, called = socket.socketpair()
        server = str(PROGRAMS / "forked_program.py")
        with called:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "error", server, name],
                stdin=called,
                env=ENVIRONMENT,
            )

    def run(self, arguments: list[str], out: IO[str], err: IO[str]) -> int:
        """Its exit status."""
        message, files = json.dumps(arguments).encode(), [out.fileno(), err.fileno()]
        socket.send_fds(self._calling, [message], files)
        return int(self._calling.recv(LONGEST_STATUS))

    def end(self) -> None:
        self._calling.close()
        self._process.wait()


class Programs:
    """The program that was run last is kept: most tests share one with the next."""

    def __init__(self) -> None:
        self._kept: dict[str, Program] = {}
        atexit.register(self.end)

    def named(self, name: str) -> Program:
        if name not in self._kept:
            self.end()
            self._kept[name] = Program(name)
        return self._kept[name]

    def end(self) -> None:
        while self._kept:
            self._kept.popitem()[1].end()


KEPT = Programs()


def run_and_read(name: str, *arguments: object) -> tuple[int, str, str]:
    """The exit status of a program, and what it prints to output and error output."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        status = KEPT.named(name).run([str(word) for word in arguments], out, err)
        out.seek(0)
        err.seek(0)
        return status, out.read(), err.read()


def run_program(name: str, *arguments: object) -> list[Any]:
    """The lines of JSON a program prints; it must end well."""
    if QUICK:
        pytest.skip("starts processes: make test")
    status, printed, said = run_and_read(name, *arguments)
    assert status == 0, f"status {status}: {said}"
    # Shown when a test fails: what went wrong in children.
    sys.stderr.write(said)
    return [json.loads(line) for line in printed.splitlines()]
