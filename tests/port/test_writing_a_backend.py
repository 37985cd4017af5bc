"""docs/writing-a-backend.md: its layers pass the suite, which finds a broken one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.backends import Backend
from holdfast.testing import StoreTests

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "writing-a-backend.md").read_text()
FILES = dict(re.findall(r"```py\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL))
# Rules of all kinds, but few: the suite itself is tried on every backend of ours.
SOME = "label or conflict or feed"


@pytest.fixture
def package(tmp_path):
    """The files of the page, installed."""
    about = tmp_path / "counting-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: counting\nVersion: 1\n"
    )
    [[group, entry]] = re.findall(
        r'```toml\n\[project.entry-points."(.*?)"\]\n(.*?)\n```', PAGE
    )
    unquoted = entry.replace('"', "")
    (about / "entry_points.txt").write_text(f"[{group}]\n{unquoted}\n")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def _suite(package):
    plain = ("-p", "no:cacheprovider", "-p", "no:xdist")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-x", *plain, "-k", SOME, "test_counting.py"],
        capture_output=True,
        text=True,
        cwd=package,
        env={"PYTHONPATH": str(package), "PATH": ""},
        check=False,
    )


def _change(package, old, new):
    """Put something else into the first file of the page."""
    module = package / "counting.py"
    text = module.read_text()
    assert old in text
    imports = "from msgspec.structs import replace\n"
    module.write_text(imports + text.replace(old, new))


SQLITE = 'SqliteBackend(address.removeprefix("counting:"), **options)'


@pytest.mark.parametrize("below", [SQLITE, f"Counting({SQLITE})"], ids=["one", "two"])
def test_the_layer_of_the_page_passes_the_suite(package, below):
    _change(package, SQLITE, below)

    ran = _suite(package)

    assert ran.returncode == 0, ran.stdout
    [passed] = re.findall(r"(\d+) passed", ran.stdout)
    assert int(passed) > 20
    assert "failed" not in ran.stdout
    assert "skipped" not in ran.stdout


def test_a_backend_that_breaks_a_promise_does_not_pass(package):
    broken = "super().commit([replace(write, marks=()) for write in writes])"
    _change(package, "super().commit(writes)", broken)

    ran = _suite(package)

    assert ran.returncode == 1, ran.stdout


def test_every_verb_of_the_port_is_in_the_checklist():
    checklist = PAGE.rpartition("## Checklist")[2]
    stated = {"blocking", "abilities"}

    verbs = {name for name in vars(Backend) if not name.startswith("_")} - stated

    assert {verb for verb in verbs if f"`{verb}`" not in checklist} == set()


def test_the_rule_that_the_page_switches_off_is_one_of_the_suite():
    [rule] = re.findall(r"`(test_\w+) = None`", PAGE)

    assert callable(getattr(StoreTests, rule))
