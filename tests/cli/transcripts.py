"""Transcripts of the command line: what is typed, and what it prints.

A transcript is a text of commands, each followed by what it prints:

    $ holdfast threads              with pipes; lines of standard error begin with "! "
    tty$ holdfast rewind x@1 <<< y  on a terminal, typing "y"; ESC is shown as "^["

and by "[exit 3]" where the exit status is not 0. `replay` runs the commands of one
again and gives the transcript as it should be now.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from forks import Forks, forks

PIPED, TERMINAL, TYPED = "$ ", "tty$ ", " <<< "


def replay(transcript: str, folder: Path) -> str:
    """The transcript of the same commands, run now."""
    parts = []
    with forks(folder) as commands:
        for line in transcript.splitlines():
            if line.startswith((PIPED, TERMINAL)):
                answer = _answer(line, commands).replace(str(folder), "FOLDER")
                parts.append(f"{line}\n{answer}")
            elif line.startswith("# "):
                parts.append(f"{line}\n")
    return "\n".join(parts)


def _answer(line: str, commands: Forks) -> str:
    prompt, _, rest = line.partition("$ ")
    written, _, typed = rest.partition(TYPED)
    program, *arguments = shlex.split(written)
    assert program == "holdfast"
    run = commands.on_terminal if prompt else commands.piped
    ran = run(*arguments, typed=f"{typed}\n" if typed else "")
    errors = "".join(f"! {said}\n" for said in ran.err.splitlines())
    status = f"[exit {ran.status}]\n" if ran.status else ""
    return f"{_ended(ran.out)}{errors}{status}".replace("\x1b", "^[")


def _ended(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
