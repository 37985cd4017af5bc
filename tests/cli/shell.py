"""Runs `holdfast` as a real process, with its output piped or on a pseudo-terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROWS, COLUMNS = 40, 88
HOLDFAST = (sys.executable, "-m", "holdfast")
KEPT = ("PATH", "HOME", "PYTHONPATH")


@dataclass(frozen=True)
class Ran:
    """What a process printed and how it ended; of a terminal, all is in ``out``."""

    status: int
    out: str
    err: str = ""


def environment(**more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return {**kept, "PYTHONUTF8": "1", "TERM": "xterm", "LESS": "", **more}


def piped(*arguments: str, folder: Path, typed: str = "", **env: str) -> Ran:
    ran = subprocess.run(
        [*HOLDFAST, *arguments],
        cwd=folder,
        env=environment(**env),
        input=typed.encode(),
        capture_output=True,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout.decode(), ran.stderr.decode())


def on_terminal(
    *arguments: str,
    folder: Path,
    typed: str = "",
    program: Sequence[str] = HOLDFAST,
    **env: str,
) -> Ran:
    parent, child = open_terminal(typed)
    with subprocess.Popen(
        [*program, *arguments],
        cwd=folder,
        env=environment(**env),
        stdin=child,
        stdout=child,
        stderr=child,
        start_new_session=True,
    ) as process:
        os.close(child)
        shown = shown_on(parent)
    return Ran(process.returncode, shown)


def open_terminal(typed: str, columns: int = COLUMNS) -> tuple[int, int]:
    """Both sides of a terminal on which something has been typed."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    os.write(parent, typed.encode())
    return parent, child


def shown_on(parent: int) -> str:
    """All output of a terminal, until the last program has closed it."""
    shown = bytearray()
    with contextlib.suppress(OSError):  # EIO: the other side has closed it
        while block := os.read(parent, 65_536):
            shown += block
    os.close(parent)
    return shown.decode().replace("\r\n", "\n")
