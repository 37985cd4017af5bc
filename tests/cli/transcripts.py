"""Transcripts of the command line: what is typed, and what it prints.

A transcript is a text of commands, each followed by what it prints:

    $ holdfast threads              with pipes; lines of standard error begin with "! "
    tty$ holdfast rewind x@1 <<< y  on a terminal, typing "y"; ESC is shown as "^["
    tty160$ holdfast log            on a terminal of 160 columns, 88 if it does not say

and by "[exit 3]" where the exit status is not 0. `replay` runs the commands of one
again and gives the transcript as it should be now.
"""

from __future__ import annotations

import re
import shlex
from functools import partial
from pathlib import Path

from forks import Forks

COMMAND = re.compile(r"(?P<terminal>tty(?P<columns>[0-9]*))?\$ (?P<written>.*)")
TYPED = " <<< "


def replay(transcript: str, folder: Path, commands: Forks) -> str:
    """The transcript of the same commands, run now in a folder."""
    parts = []
    commands.folder = str(folder)
    for line in transcript.splitlines():
        if asked := COMMAND.fullmatch(line):
            answer = _answer(asked, commands).replace(str(folder), "FOLDER")
            parts.append(f"{line}\n{answer}")
        elif line.startswith("# "):
            parts.append(f"{line}\n")
    return "\n".join(parts)


def _answer(asked: re.Match[str], commands: Forks) -> str:
    written, _, typed = asked["written"].partition(TYPED)
    program, *arguments = shlex.split(written)
    assert program == "holdfast"
    run = commands.on_terminal if asked["terminal"] else commands.piped
    if asked["columns"]:
        run = partial(commands.on_terminal, columns=int(asked["columns"]))
    ran = run(*arguments, typed=f"{typed}\n" if typed else "")
    errors = "".join(f"! {said}\n" for said in ran.err.splitlines())
    status = f"[exit {ran.status}]\n" if ran.status else ""
    return f"{_ended(ran.out)}{errors}{status}".replace("\x1b", "^[")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
