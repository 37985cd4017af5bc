"""What users and their programs rely on, written down as it is and compared with now.

    api.txt             every public name: its kind, signature, and a digest of its text
    json/commands.txt   the schemas of all JSON that commands print
    json/tools.json     what tools take and give, as models read it
    json/viewer.txt     what the routes of the viewer's API take and give
    ../fixtures         stores of every format that was ever written, and their content

A test here fails if one of them changes, and shows the difference. If the change is
meant, `make frozen` writes the files as things are now; look at `git diff` then. The
stores of old formats are never written again.
"""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
IS_WRITING = "WRITE_FROZEN" in os.environ


def compare(name: str, now: str) -> None:
    """Fail unless the frozen file of that name is this text."""
    file = HERE / name
    if IS_WRITING:
        file.parent.mkdir(exist_ok=True)
        file.write_text(now)
    frozen = file.read_text() if file.exists() else ""
    lines = difflib.unified_diff(
        frozen.splitlines(), now.splitlines(), "frozen", "now", lineterm="", n=1
    )
    if difference := "\n".join(lines):
        pytest.fail(
            f"{difference}\ntests/frozen/{name} says something else than the code."
            " If users are meant to see this change, accept it: make frozen",
            pytrace=False,
        )
