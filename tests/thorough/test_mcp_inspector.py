"""The server before the Inspector of those who make the protocol, in its strict mode.

It is installed from npm for these tests; where that cannot be had they are skipped.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from support.folders import TESTS

sys.path.insert(0, str(TESTS / "mcp"))

from served import command, environment, serving

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
# The Inspector wants this version at least.
NODE = "node@22"
ERAS = ["legacy", "auto", "modern"]
TOOL_FAILED = 5


@pytest.fixture(scope="module")
def inspect(tmp_path_factory):
    """Runs the Inspector: its exit status, what it found, and what it warned of."""
    folder = tmp_path_factory.mktemp("inspector")
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    got = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", NODE, INSPECTOR],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if got.returncode != 0:
        pytest.skip(f"npm cannot install the Inspector: {got.stderr[-500:]}")
    modules = folder / "node_modules"
    node = modules / "node" / "bin" / "node"
    launcher = (
        modules / INSPECTOR.rpartition("@")[0] / "clients/launcher/build/index.js"
    )

    def run(target, *arguments):
        ran = subprocess.run(
            [node, launcher, "--cli", *target, "--format", "json", *arguments],
            cwd=folder,
            env=environment(
                HOME=str(folder), PATH=f"{node.parent}:{os.environ['PATH']}"
            ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        found = json.loads(ran.stdout)["result"] if ran.stdout else None
        return ran.returncode, found, ran.stderr

    return run


@pytest.fixture
def started(tmp_path):
    """What starts a server over standard input and output."""
    return command(tmp_path / "store.db")


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_portable_over_standard_input(inspect, started, era):
    asked = ("--method", "tools/list", "--strict", "--protocol-era", era)

    status, found, warned = inspect(started, *asked)

    assert (status, warned) == (0, "")
    assert len(found["tools"]) == 14


@pytest.mark.parametrize("era", ERAS)
def test_the_tools_are_portable_over_http(inspect, tmp_path, era):
    with serving(tmp_path / "store.db") as served:
        authorization = f"Authorization: Bearer {served.token}"
        asked = ("--method", "tools/list", "--strict", "--protocol-era", era)

        status, found, warned = inspect([served.url, "--header", authorization], *asked)

    assert (status, warned) == (0, "")
    assert len(found["tools"]) == 14


def test_a_tool_is_called_and_its_thread_is_a_resource(inspect, started):
    arguments = json.dumps({"agent_id": "a", "state": {"n": 1}})
    calling = ("--method", "tools/call", "--tool-name", "agent_save")

    status, saved, _ = inspect(started, *calling, "--tool-args-json", arguments)
    _, listed, _ = inspect(started, "--method", "resources/list")
    uri = listed["resources"][0]["uri"]
    _, read, _ = inspect(started, "--method", "resources/read", "--uri", uri)

    assert status == 0
    assert saved["structuredContent"]["created"]
    assert json.loads(read["contents"][0]["text"])["state"]["state"] == {"n": 1}


def test_an_error_of_a_tool_is_told_from_one_of_the_protocol(inspect, started):
    calling = ("--method", "tools/call", "--tool-name", "agent_load")

    status, found, _ = inspect(started, *calling, "--tool-arg", "agent_id=nobody")

    assert status == TOOL_FAILED
    assert found["isError"]
    assert "there is no agent 'nobody'" in found["content"][0]["text"]
