"""The adapters work with the oldest versions of the frameworks they promise to support.

Each framework gets a virtual environment with its oldest versions, in front of the one
that runs this test, and the adapter's tests run in it. Needs a package index.
"""

from __future__ import annotations

import os
import site
import subprocess
import sys
import venv
from typing import NamedTuple

import pytest

from support.folders import ROOT, TESTS

ADAPTERS = str(TESTS / "adapters")


class Oldest(NamedTuple):
    """The oldest versions that work together, and the folder of their tests."""

    pins: tuple[str, ...]
    tests: str


FRAMEWORKS = {
    "langgraph": Oldest(
        (
            "langchain-core==1.0.0",
            "langgraph==1.0.0",
            "langgraph-checkpoint==2.1.2",
            "langgraph-checkpoint-postgres==2.0.25",
            "langgraph-checkpoint-sqlite==2.0.11",
        ),
        "langgraph",
    ),
    # With a newer openai than those of its time, this SDK cannot even count tokens.
    "openai-agents": Oldest(("openai-agents==0.8.0", "openai==2.9.0"), "openai_agents"),
    "mcp": Oldest(("mcp==2.2.0",), "mcp_events"),
}


def environment(folder: str, pins: tuple[str, ...]) -> str:
    """The interpreter of a new environment; what it lacks it takes from ours."""
    venv.create(folder, with_pip=True, symlinks=True)
    python = os.path.join(folder, "bin", "python")
    install = [python, "-m", "pip", "install", "--disable-pip-version-check", *pins]
    subprocess.run(install, check=True, capture_output=True, timeout=600)
    where = "import site; print(site.getsitepackages()[0])"
    [own] = subprocess.check_output([python, "-c", where], text=True).split()
    # Only now: pip would take what is there for installed.
    with open(os.path.join(own, "behind.pth"), "w") as file:
        file.writelines(
            f"import site; site.addsitedir({ours!r})\n"
            for ours in site.getsitepackages()
        )
    return python


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_oldest_supported_versions_pass_the_tests_of_their_adapter(name, tmp_path):
    oldest = FRAMEWORKS[name]
    python = environment(str(tmp_path / "oldest"), oldest.pins)
    tests = os.path.join(ADAPTERS, oldest.tests)

    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-W", "ignore"]
    ended = subprocess.run(
        [python, "-m", "pytest", *options, tests],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )

    sys.stdout.write(ended.stdout)
    assert os.path.isdir(tests)
    assert ended.returncode == 0, ended.stderr
    for pin in oldest.pins:
        package, version = pin.split("==")
        found = f"from importlib.metadata import version; print(version({package!r}))"
        assert (
            subprocess.check_output([python, "-c", found], text=True) == f"{version}\n"
        )
