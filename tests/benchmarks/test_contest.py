"""`python -m benchmarks contest` as a process: its output, and what it leaves."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from support.folders import ROOT

pytestmark = pytest.mark.processes

CONTEST = (sys.executable, "-m", "benchmarks", "contest")
DEADLINE = 120.0


def test_a_run_prints_every_store_draws_the_chart_and_leaves_no_folder(tmp_path):
    disk, chart = tmp_path / "disk", tmp_path / "sizes.svg"
    disk.mkdir()
    options = ["--quick", "--turns=3", "--json", f"--at={disk}", f"--chart={chart}"]

    ran = subprocess.run(
        [*CONTEST, *options], cwd=ROOT, capture_output=True, check=True
    )

    found = json.loads(ran.stdout)
    stores = {store["store"]: store for store in found["stores"]}
    assert {"save", "append", "compressed", "json", "blob"} <= stores.keys()
    assert stores["blob"]["ratios"].keys() == {
        "on_disk", "a_turn", "first_load", "last_ten",
    }  # fmt: skip
    assert all(store["turns"] == 3 for store in stores.values())
    assert all(store["lost"] == 0 for store in stores.values())
    assert "on_disk" in found["losses"]["json"], "one file is the smallest there is"
    assert found["environment"]["disk"].endswith(f"at {disk}")
    assert "Holdfast, save" in chart.read_text()
    assert sorted(os.listdir(tmp_path)) == ["disk", "sizes.svg"]
    assert os.listdir(disk) == []


def test_a_run_that_is_ended_leaves_no_folder_and_no_process(tmp_path):
    with subprocess.Popen(
        [*CONTEST, "--turns=100000", f"--at={tmp_path}"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        said = process.stderr.readline()
        if b" is in memory" in said:  # as what is written in `make test`
            said = process.stderr.readline()
        workers = psutil.Process(process.pid).children(recursive=True)
        made = os.listdir(tmp_path)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=DEADLINE)

    assert (process.returncode, out) == (130, b"")
    assert said.startswith(b"Measuring: ")
    assert made
    assert os.listdir(tmp_path) == []
    assert workers
    assert not [worker for worker in workers if is_alive(worker)]


def is_alive(process):
    # A process of a worker that was killed may wait for init to ask for its status.
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False
