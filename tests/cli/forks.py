"""Runs many commands of `holdfast` as forks of one process, piped or on a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from shell import COLUMNS, Ran, environment, open_terminal, shown_on

from support.folders import PROGRAMS

LONGEST_STATUS = 16


class Forks:
    """A process that has imported `holdfast`, and runs each command in a fork."""

    def __init__(self, calling: socket.socket) -> None:
        self._calling = calling

    def _start(self, arguments: tuple[str, ...], files: list[int]) -> None:
        socket.send_fds(self._calling, [json.dumps(arguments).encode()], files)
        for file in set(files):
            os.close(file)

    def _status(self) -> int:
        return int(self._calling.recv(LONGEST_STATUS))

    def piped(self, *arguments: str, typed: str = "") -> Ran:
        reading, typing = os.pipe()
        os.write(typing, typed.encode())
        os.close(typing)
        (shown, out), (said, err) = os.pipe(), os.pipe()
        self._start(arguments, [reading, out, err])
        with open(shown, "rb") as output, open(said, "rb") as errors:
            text, told = output.read().decode(), errors.read().decode()
        return Ran(self._status(), text, told)

    def on_terminal(
        self, *arguments: str, typed: str = "", columns: int = COLUMNS
    ) -> Ran:
        parent, child = open_terminal(typed, columns)
        self._start(arguments, [child, child, child])
        shown = shown_on(parent)
        return Ran(self._status(), shown)


@contextlib.contextmanager
def forks(folder: Path) -> Iterator[Forks]:
    """Commands that are run in a folder."""
    calling, called = socket.socketpair()
    with calling, called:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAMS / "forked_commands.py")],
            cwd=folder,
            env=environment(),
            stdin=called,
        )
        called.close()
        yield Forks(calling)
        calling.shutdown(socket.SHUT_WR)
        assert process.wait() == 0
