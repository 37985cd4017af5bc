"""The Tab key, pressed in real shells on a pseudo-terminal.

The shell finds a `holdfast` that completes as ours does and, when it is called, prints
the line that it was called with: what stands there is what the key has made of it.
"""

from __future__ import annotations

import os
import select
import shutil
import stat
import subprocess
import sys
import time

import pytest
import shell
import stores

import holdfast
from support.folders import TESTS

pytestmark = pytest.mark.processes

DEADLINE = 120.0
PROMPT = b"ready> "
# A busy machine must not decide what is found, so there is no limit of time.
PROGRAM = """\
#!{python}
import os, sys
if "_HOLDFAST_COMPLETE" not in os.environ and sys.argv[1:2] != ["completion"]:
    print(f"<<{{' '.join(sys.argv[1:])}}>>")
    sys.exit()
from holdfast.cli import main
from inner.cli import completion
completion.LIMIT_SECONDS = 120.0
sys.exit(main())
"""
# A shell wants a terminal of its own, by which it is interrupted.
IN_CHARGE = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
FILES = {
    "bash": ("rc", "PS1='{prompt}'\n{script}"),
    "zsh": (
        ".zshrc",
        "autoload -Uz compinit; compinit -u -D; PS1='{prompt}'\n{script}",
    ),
    "fish": (
        "rc",
        "function fish_prompt; echo -n '{prompt}'; end\n{script}",
    ),
}
STARTED = {
    "bash": ("bash", "--noprofile", "--rcfile", "rc", "-i"),
    "zsh": ("zsh", "-i"),
    "fish": ("fish", "--no-config", "--init-command", "source rc", "-i"),
}
TYPED = {
    "lo": "log",
    "log supp": "log support-4812",
    "show recall-kx17@4": "show recall-kx17@4",
    "show fix-policy@t": "show fix-policy@tag:ok",
    "show fix-policy@label:g": "show fix-policy@label:golden",
    "log conversation:tr": "log conversation:trip-7",
    "log tri": "log trip-7",
    "log --gr": "log --graph",
}


@pytest.fixture
def folder(tmp_path):
    stores.make_support(tmp_path / "agents.db")
    with holdfast.open(tmp_path / "agents.db") as store:
        for n in range(4):
            store.thread("recall-kx17").save({"n": n})
        store.conversations.create("trip-7")
    program = tmp_path / "bin" / "holdfast"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return tmp_path


@pytest.mark.parametrize("name", STARTED)
def test_the_tab_key_completes_commands_options_threads_and_references(name, folder):
    if shutil.which(name) is None:
        pytest.skip(f"there is no {name}")
    script = shell.piped("completion", name, folder=folder).out
    file, text = FILES[name]
    prompt = PROMPT.decode()
    (folder / file).write_text(text.format(prompt=prompt, script=script))

    with pressed(STARTED[name], folder) as keys:
        found = {typed: keys.line_after(f"holdfast {typed}\t\r") for typed in TYPED}

    assert found == TYPED


class pressed:  # noqa: N801 - used like a function
    """A shell on a terminal."""

    def __init__(self, command, folder):
        path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        home = {"HOME": str(folder), "ZDOTDIR": str(folder), "PATH": path}
        home["PYTHONPATH"] = str(TESTS)
        self.parent, child = shell.open_terminal("")
        self.process = subprocess.Popen(
            [sys.executable, "-c", IN_CHARGE, *command],
            cwd=folder,
            env=shell.environment(TERM="dumb", **home),
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
        )
        os.close(child)
        self.shown = b""

    def __enter__(self):
        self._read_until(PROMPT)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.parent)

    def line_after(self, keys):
        """What `holdfast` was called with after these keys."""
        self.shown = b""
        os.write(self.parent, keys.encode())
        self._read_until(b">>")
        return self.shown.rpartition(b"<<")[2].partition(b">>")[0].decode()

    def _read_until(self, text):
        deadline = time.monotonic() + DEADLINE
        while text not in self.shown:
            left = max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([self.parent], [], [], left)
            assert ready, self.shown
            self.shown += os.read(self.parent, 65_536)
