"""Runs one program of this folder again and again, each time in a fork.

usage: forked_program.py NAME

What the program imports is imported once. Standard input is a socket. Each message on
it is the arguments of a run, as JSON, and brings the two files that the run gets as its
output and error output. The answer is the exit status of the run.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from pathlib import Path

LONGEST = 65_536
# When a run is ended that does not end by itself, in seconds.
TIMEOUT = 200


def take(files: list[int], program: Path, arguments: list[str]) -> None:
    """In the fork: be as a process that was started for this run alone."""
    signal.alarm(TIMEOUT)
    given = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate([given, *files]):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, errors="backslashreplace", closefd=False)
    sys.argv = [str(program), *arguments]


def serve(program: Path) -> bool:
    """Fork for every message; true in the fork, which has then to run the program."""
    asked = socket.socket(fileno=os.dup(0))
    while True:
        message, files, _, _ = socket.recv_fds(asked, LONGEST, 2)
        if not message:
            asked.close()
            return False
        fork = os.fork()
        if fork == 0:
            asked.close()
            take(files, program, json.loads(message))
            return True
        for file in files:
            os.close(file)
        status = os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1])
        asked.send(str(status).encode())


def main(name: str) -> None:
    importlib.import_module(f"programs.{name}")
    # A fork that ends does not look for garbage in what all share, which copies it.
    gc.freeze()
    program = Path(__file__).with_name(f"{name}.py")
    if serve(program):
        runpy.run_path(str(program), run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
