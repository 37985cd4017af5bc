"""Runs `holdfast` as a real process, with its output piped or on a pseudo-terminal.

A transcript is a text of commands, each followed by what it prints:

    $ holdfast threads              with pipes; lines of standard error begin with "! "
    tty$ holdfast rewind x@1 <<< y  on a terminal, typing "y"; ESC is shown as "^["

and by "[exit 3]" where the exit status is not 0. `replay` runs the commands of one
again and gives the transcript as it should be now.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROWS, COLUMNS = 40, 88
PIPED, TERMINAL, TYPED = "$ ", "tty$ ", " <<< "
HOLDFAST = (sys.executable, "-m", "holdfast")
KEPT = ("PATH", "HOME", "PYTHONPATH", "COVERAGE_PROCESS_START")


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
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    os.write(parent, typed.encode())
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
        shown = bytearray()
        with contextlib.suppress(OSError):  # EIO: the other side has closed it
            while block := os.read(parent, 65_536):
                shown += block
    os.close(parent)
    return Ran(process.returncode, shown.decode().replace("\r\n", "\n"))


def replay(transcript: str, folder: Path) -> str:
    """The transcript of the same commands, run now."""
    parts = []
    for line in transcript.splitlines():
        if line.startswith((PIPED, TERMINAL)):
            parts.append(f"{line}\n{_answer(line, folder)}")
        elif line.startswith("# "):
            parts.append(f"{line}\n")
    return "\n".join(parts)


def _answer(line: str, folder: Path) -> str:
    prompt, _, rest = line.partition("$ ")
    written, _, typed = rest.partition(TYPED)
    program, *arguments = shlex.split(written)
    assert program == "holdfast"
    run = on_terminal if prompt else piped
    ran = run(*arguments, folder=folder, typed=f"{typed}\n" if typed else "")
    errors = "".join(f"! {said}\n" for said in ran.err.splitlines())
    status = f"[exit {ran.status}]\n" if ran.status else ""
    text = f"{_ended(ran.out)}{errors}{status}".replace("\x1b", "^[")
    return text.replace(str(folder), "FOLDER")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
