"""Runs over real stores in real processes."""

from __future__ import annotations

import pytest
from benchmarks.contest.figures import Size
from benchmarks.contest.lines import lines
from benchmarks.contest.peers import PEERS, WHOLE, Peer
from benchmarks.contest.report import measure

from support.folders import TESTS

pytestmark = pytest.mark.processes

TINY = Size(turns=3, rounds=1, twice=False)
STORES = "support.contest_stores"


@pytest.fixture(autouse=True)
def _support(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


def measured(folder, *peers, size=TINY):
    steps = []
    report = measure(peers, size, str(folder), lambda *step: steps.append(step))
    assert list(folder.iterdir()) == []
    return report, steps


def text(report):
    return "\n".join("".join(part for part, _ in line) for line in lines(report))


def test_frameworks_are_measured_beside_ours_for_the_same_work(tmp_path):
    keys = ["holdfast-saver", "sqlite-session", "save"]

    report, _ = measured(tmp_path, *map(PEERS.get, keys))

    assert not report.not_measured
    for figures in report.measured.values():
        assert figures.recorded.turns == 3
        assert figures.recorded.disk_bytes > figures.recorded.raw_bytes
        assert figures.acknowledged >= 10
        assert figures.lost == 0
    assert report.is_good
    assert report.environment["langgraph"]


def test_stores_go_on_to_twice_as_many_turns_and_every_step_is_counted(tmp_path):
    size = Size(turns=3, rounds=2)

    report, steps = measured(tmp_path, PEERS["append"], PEERS["json"], size=size)

    assert [f.twice.turns for f in report.measured.values()] == [6, 6]
    assert [f.acknowledged >= 20 for f in report.measured.values()] == [True, True]
    total = len(steps)
    assert steps == [(n, total) for n in range(1, total + 1)]
    assert "turn 6" in text(report)


def test_a_store_that_needs_too_long_or_too_much_stops(tmp_path):
    slow = Size(turns=5, rounds=1, seconds=0.0, twice=False)
    large = Size(turns=50, rounds=1, bytes=1, twice=False)

    by_time, _ = measured(tmp_path, PEERS["json"], size=slow)
    by_size, _ = measured(tmp_path, PEERS["json"], size=large)

    assert by_time.measured["json"].recorded.turns == 1
    assert "JSON file: stopped at turn 1, after 0 s" in text(by_time)
    assert by_size.measured["json"].recorded.turns == 10
    assert "JSON file: stopped at turn 10, at 15" in text(by_size)


def test_what_is_lost_by_a_kill_is_counted_and_ours_may_lose_nothing(tmp_path):
    forgetful = Peer("theirs", WHOLE, "Forgetful", f"{STORES}:Forgetful")
    damaged = Peer("damaged", WHOLE, "Damaged", f"{STORES}:Damaged")
    as_ours = Peer("json", WHOLE, "Holdfast", f"{STORES}:Forgetful")

    theirs, _ = measured(tmp_path, forgetful, damaged)
    ours, _ = measured(tmp_path, as_ours)

    for key in ("theirs", "damaged"):
        assert theirs.measured[key].lost == theirs.measured[key].acknowledged >= 10
    assert "JSONDecodeError" in theirs.measured["damaged"].after_kill
    assert theirs.is_good
    assert not ours.is_good
    assert "turns by a kill" in text(ours)


def test_a_store_that_fails_and_one_that_is_missing_do_not_stop_the_others(tmp_path):
    failing = Peer("blob", WHOLE, "Failing", f"{STORES}:Failing")
    missing = Peer("git", WHOLE, "Missing", "no:such", packages=("no-such-package",))

    report, _ = measured(tmp_path, failing, missing, PEERS["json"])

    assert list(report.measured) == ["json"]
    assert report.not_measured == {
        "git": "pip install no-such-package",
        "blob": "ValueError: no room for a second turn",
    }
    assert "not measured: pip install no-such-package" in text(report)
