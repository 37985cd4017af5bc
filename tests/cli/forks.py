"""Runs many commands of `holdfast`: here, or on a terminal in forks of one process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from shell import COLUMNS, Ran, environment, open_terminal, shown_on

from inner.cli import run_command_line
from programs.forked_commands import NOW
from support.folders import PROGRAMS, TESTS

LONGEST_STATUS = 16


class Forks:
    """A process that has imported `holdfast`, and runs each command in a fork."""

    def __init__(self, calling: socket.socket) -> None:
        self._calling = calling
        self.folder = ""

    def _start(self, arguments: tuple[str, ...], files: list[int]) -> None:
        socket.send_fds(
            self._calling, [json.dumps([self.folder, arguments]).encode()], files
        )
        for file in set(files):
            os.close(file)

    def _status(self) -> int:
        return int(self._calling.recv(LONGEST_STATUS))

    def piped(self, *arguments: str, typed: str = "") -> Ran:
        """Run a command in this process, with files in the place of a terminal."""
        with (
            ExitStack() as stack,
            pytest.MonkeyPatch.context() as patch,
            warnings.catch_warnings(),
        ):
            streams = {
                name: stack.enter_context(
                    tempfile.TemporaryFile("w+", encoding="utf-8")
                )
                for name in ("stdin", "stdout", "stderr")
            }
            streams["stdin"].write(typed)
            streams["stdin"].seek(0)
            for name, stream in streams.items():
                patch.setattr(sys, name, stream)
            warnings.simplefilter("default")
            warnings.simplefilter("ignore", ResourceWarning)  # as Python does
            patch.chdir(self.folder)
            for name in os.environ.keys() - environment().keys():
                patch.delenv(name)
            for name, value in environment().items():
                patch.setenv(name, value)
            status = run_command_line(arguments, lambda: NOW)
            for name in ("stdout", "stderr"):
                streams[name].seek(0)
            return Ran(status, streams["stdout"].read(), streams["stderr"].read())

    def on_terminal(
        self, *arguments: str, typed: str = "", columns: int = COLUMNS
    ) -> Ran:
        parent, child = open_terminal(typed, columns)
        self._start(arguments, [child, child, child])
        shown = shown_on(parent)
        return Ran(self._status(), shown)


@contextmanager
def forks() -> Iterator[Forks]:
    """The process, which ends with the block."""
    calling, called = socket.socketpair()
    with calling, called:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAMS / "forked_commands.py")],
            env=environment(PYTHONPATH=str(TESTS)),
            stdin=called,
        )
        called.close()
        yield Forks(calling)
        calling.shutdown(socket.SHUT_WR)
        assert process.wait() == 0
