"""What is published works alone, installed into an empty environment."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import tarfile
import zipfile

import pytest

import holdfast
from support.folders import DOCS, ROOT
from support.pages import BLOCK, shown
from support.wheel import environment_of, installed_alone, packages

pytestmark = pytest.mark.processes

TUTORIAL = (DOCS / "tutorial.md").read_text()
README = ROOT / "README.md"
with_addresses = runpy.run_path(str(ROOT / "hatch_build.py"))["with_addresses"]
KILLED = 128 + 9
# A file to save, or a command and what it prints, in the order of the page.
STEPS = re.compile(
    r"`(?P<file>\w+\.py)`:\n\n```python\n(?P<text>.*?)```"
    r"|```console\n(?P<typed>.*?)```",
    re.DOTALL,
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    # Processes that test side by side have folders in one folder.
    folder = tmp_path_factory.getbasetemp()
    return installed_alone(
        folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    )


@pytest.fixture
def type_in(programs, tmp_path):
    """Runs a command as a person does, in an empty folder."""

    def run(command):
        return subprocess.run(
            command,
            shell=isinstance(command, str),
            cwd=tmp_path,
            env=environment_of(programs),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            check=False,
        )

    return run


def as_pattern(output):
    """What a page shows, where `…` stands for anything."""
    return ".*".join(re.escape(part) for part in output.strip().split("…"))


def test_the_wheel_has_the_package_and_the_archive_has_the_tests_too(programs):
    wheel, archive = packages(programs.parent.parent / "dist")

    with zipfile.ZipFile(wheel) as opened:
        tops = {name.split("/")[0] for name in opened.namelist()}
        assert "holdfast/py.typed" in opened.namelist()
    assert tops == {"holdfast", f"{wheel.name.split('-py3')[0]}.dist-info"}
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"README.md", "LICENSE", "docs/index.md", "tests/conftest.py"} <= names


def test_the_readme_runs_twice_with_nothing_but_the_wheel(type_in):
    program = "\n".join(code for code, _ in BLOCK.findall(README.read_text()))

    first, second = [type_in(["python", "-c", program]) for _ in range(2)]

    assert first.stdout == shown(README)
    assert second.returncode == 0, second.stdout


def test_the_tutorial_can_be_followed_with_nothing_but_the_wheel(type_in, tmp_path):
    for step in STEPS.finditer(TUTORIAL):
        if step["file"]:
            (tmp_path / step["file"]).write_text(step["text"])
            continue
        for typed in re.split(r"^\$ ", step["typed"], flags=re.MULTILINE)[1:]:
            command, _, output = typed.partition("\n")
            ended = type_in(command)
            assert ended.returncode in (0, KILLED), ended.stdout
            found = re.fullmatch(as_pattern(output), ended.stdout.strip(), re.DOTALL)
            assert found, f"{command}\n{ended.stdout}"


def test_the_description_of_the_package_has_no_dead_link(programs):
    wheel, _ = packages(programs.parent.parent / "dist")
    with zipfile.ZipFile(wheel) as opened:
        [name] = [n for n in opened.namelist() if n.endswith("/METADATA")]
        described = opened.read(name).decode()

    assert "# Holdfast" in described
    assert not re.findall(r"\]\((?![a-z]+:|#)[^)]*\)", described)


ADDRESSES = {"Source": "https://example.org/src/", "Raw": "https://example.org/raw"}


def test_links_of_the_readme_get_the_addresses_of_the_project():
    readme = "![A chart](docs/a.svg)\n\n[Threads](docs/threads.md), [it](https://b.c)\n"

    assert with_addresses(readme, ADDRESSES) == (
        "![A chart](https://example.org/raw/docs/a.svg)\n\n"
        "[Threads](https://example.org/src/docs/threads.md), [it](https://b.c)\n"
    )
    assert with_addresses(readme, {}) == "Threads, [it](https://b.c)\n"


def test_the_changelog_has_the_date_of_this_version():
    changes = (ROOT / "CHANGELOG.md").read_text()

    newest = re.findall(r"^## (.+)$", changes, re.MULTILINE)[0]
    assert re.fullmatch(
        rf"{re.escape(holdfast.__version__)}, \d{{4}}-\d\d-\d\d", newest
    )
