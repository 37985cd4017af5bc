"""The commands in the blocks of pages run, each block in a folder with a store.

A command that cannot run here is listed with the reason, and a new one is one or the
other. The `console` blocks of the tutorial run in tests/project/test_package.py.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from functools import partial
from pathlib import Path

import pytest
import shell

import holdfast
from support.folders import DOCS, ROOT
from support.pages import printed

pytestmark = pytest.mark.processes

README = ROOT / "README.md"
BLOCK = re.compile(
    r"^```(sh|bash|console)?[a-z]*\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
# What is not run, by how it begins, and why.
NOT_RUN = {
    "pip install": "asks the network; test_package.py installs the wheel",
    "python -m venv": "test_package.py makes an environment",
    ". .venv/bin/activate": "test_package.py makes an environment",
    "make ": "targets of the project; the continuous integration runs them",
    "HOLDFAST_TEST_POSTGRES=": "needs a server of the reader's",
    "holdfast --store postgresql:": "needs a server of the reader's",
    "python -m benchmarks": "takes minutes; tests/benchmarks runs it smaller",
    "holdfast selftest": "takes minutes; tests/testing runs it smaller",
    "holdfast serve": "a server; tests/viewer starts it",
    "holdfast mcp": "a server; tests/mcp starts it",
    "export HOLDFAST_TOKEN=": "for a server",
    "claude ": "another program",
    "adk ": "another program",
}
TIME = re.compile(r"\d+[smhd] ago|now")


def blocks(page: Path) -> list[tuple[str, str]]:
    """The commands of each block, and what it shows; blocks of programs have none."""
    found = []
    for kind, text in BLOCK.findall(page.read_text()):
        if kind == "console" and page.stem != "tutorial":
            lines = text.splitlines(keepends=True)
            typed = "".join(line[2:] for line in lines if line.startswith("$ "))
            shown = "".join(line for line in lines if not line.startswith("$ "))
            found.append((typed, shown))
        elif kind in {"sh", "bash"}:
            found.append((text, ""))
    return found


def runnable(typed: str) -> str:
    commands = typed.replace("\\\n", "").splitlines()
    kept = [line for line in commands if not line.startswith((*NOT_RUN,))]
    if shutil.which("zstd") is None:  # not a part of Holdfast
        kept = [line for line in kept if "zstd" not in line]
    return "\n".join(kept)


def fill(folder: Path) -> None:
    """A store with what the pages name."""
    with holdfast.open(str(folder / "agents.db"), durability="normal") as store:
        store.thread("support-4812").append(messages=["hi"])
        store.conversations.create("desk", messages=[{"role": "user", "content": "?"}])


def fill_workspace(folder: Path) -> None:
    """A folder whose files are saved with the states of a thread, and the store."""
    (folder / ".gitignore").write_text("agents.db*\n")
    (folder / "src").mkdir()
    workspace = holdfast.Workspace(str(folder))
    with holdfast.open(str(folder / "agents.db"), durability="normal") as store:
        for n in range(8):
            (folder / "src" / "main.py").write_text(f"print({n})\n")
            label = "good" if n == 6 else None
            store.thread("coder").save({"n": n}, files=workspace, label=label)


# What makes the store for the blocks of a page; the README's own programs do.
STORES = {"README": partial(printed, README), "workspace": fill_workspace}
PAGES = sorted([README, *DOCS.rglob("*.md")])
FOUND = [(page, *block) for page in PAGES for block in blocks(page)]
RUN = [
    (page, runnable(typed), shown) for page, typed, shown in FOUND if runnable(typed)
]


@pytest.mark.parametrize(
    ("page", "typed", "shown"), RUN, ids=[page.stem for page, *_ in RUN]
)
def test_the_commands_of_a_block_run_and_print_what_it_shows(
    page, typed, shown, tmp_path
):
    folder = tmp_path / "project"
    folder.mkdir()
    STORES.get(page.stem, fill)(folder)

    ran = shell.on_terminal(
        folder=folder,
        program=("bash", "-euo", "pipefail", "-c", typed),
        typed="y\n" * 5,  # what a command asks before it changes something
        PATH=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
        NO_COLOR="1",
        HOLDFAST_PAGER="cat",
    )

    assert ran.status == 0, ran.out
    wanted = TIME.split(" ".join(shown.split()))
    pattern = f"({TIME.pattern})".join(map(re.escape, wanted))
    assert re.search(pattern, " ".join(ran.out.split())), ran.out


def test_every_reason_not_to_run_a_command_is_needed():
    lines = [line for _, typed, _ in FOUND for line in typed.splitlines()]

    assert [n for n in NOT_RUN if not any(line.startswith(n) for line in lines)] == []
