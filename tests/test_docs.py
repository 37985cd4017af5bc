"""What the documents say is true: their code runs and prints what they show."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCK = re.compile(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", re.DOTALL)


def test_the_readme_s_code_prints_what_the_readme_shows(tmp_path):
    blocks = BLOCK.findall(README)
    program = "\n".join(code for code, _ in blocks)
    shown = "".join(output for _, output in blocks)

    ran = subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )

    assert len(blocks) >= 3
    assert ran.stdout == shown


def test_the_readme_fits_its_size_and_names_the_two_commands():
    assert len(README.splitlines()) < 150
    assert "make demo" in README
    assert "make test" in README


@pytest.mark.parametrize("name", holdfast.__all__)
def test_every_public_name_is_documented(name):
    assert inspect.getdoc(getattr(holdfast, name))


@pytest.mark.parametrize("door", [holdfast.Store, holdfast.Thread])
def test_every_public_method_says_what_it_promises(door):
    for name, member in vars(door).items():
        if not name.startswith("_"):
            assert inspect.getdoc(member), f"{door.__name__}.{name}"


def test_every_error_is_drawn_in_the_tree():
    tree = inspect.getdoc(sys.modules["holdfast.errors"]) or ""

    for name in holdfast.errors.__all__:
        assert name in tree
