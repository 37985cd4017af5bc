"""Runs `holdfast` again and again, each time in a fork that has it imported already.

Standard input is a socket. Each message on it is a folder and the arguments of a
command that runs there, as JSON, and brings the three files that the command gets as
its input, output and error output.
The answer is the exit status of the command. The present is always the same.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import socket
import sys
from typing import NoReturn

from inner.cli import commands, run_command_line

LONGEST = 65_536
# 2026-11-15 12:30:00 UTC, in microseconds: what the commands take for the present.
NOW = 1_794_745_800_000_000


def load() -> None:
    """Import what a command would import when it is called."""
    for found in pkgutil.iter_modules(commands.__path__):
        importlib.import_module(f"{commands.__name__}.{found.name}")
    importlib.import_module("inner.sqlite")


def take(files: list[int]) -> None:
    """In the fork: the files as a process has them that was started with them."""
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)


def run(folder: str, arguments: list[str]) -> NoReturn:
    """In the fork: the command. To clean up the interpreter would take most time."""
    os.chdir(folder)
    status = run_command_line(arguments, lambda: NOW)
    sys.stdout.flush()
    os._exit(status)


def serve() -> None:
    load()
    asked = socket.socket(fileno=os.dup(0))
    while True:
        message, files, _, _ = socket.recv_fds(asked, LONGEST, 3)
        if not message:
            return
        fork = os.fork()
        if fork == 0:
            take(files)
            run(*json.loads(message))
        for file in files:
            os.close(file)
        status = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
        asked.send(str(status).encode())


if __name__ == "__main__":
    serve()
