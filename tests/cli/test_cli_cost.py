"""What a command costs does not depend on how much the store holds."""

from __future__ import annotations

import apsw
import pytest

import holdfast
from holdfast.cli import main

SHORT, LONG = 100, 3000
STEPS = "SQLITE_STMTSTATUS_VM_STEP"


@pytest.fixture
def work(monkeypatch):
    """The steps of SQLite's machine: a count of the rows that were looked at."""
    counted = []

    def watch(db):
        db.trace_v2(
            apsw.SQLITE_TRACE_PROFILE,
            lambda event: counted.append(event["stmt_status"][STEPS]),
        )

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, watch])
    return counted


def make(path, length):
    with holdfast.open(path, durability="normal") as store:
        thread = store.thread("chat")
        for n in range(length):
            thread.save({"n": n})
        fork = thread.fork("fork")
        fork.save({"n": -1})
        thread.rewind("@~1")


def test_a_log_of_twenty_costs_the_same_on_a_short_and_on_a_long_thread(
    tmp_path, work, capsys
):
    commands = ("", "log chat -n 20", "log chat@~3 -n 20", "log -n 20 --graph chat")
    commands += ("log -n 20 --all chat", "show chat@~2", "reflog chat -n 20")
    counts = {}
    for length in (SHORT, LONG):
        make(tmp_path / f"{length}.db", length)
        for command in commands:
            work.clear()
            arguments = [*command.split(), "--store", str(tmp_path / f"{length}.db")]
            assert main(arguments) == 0
            counts[command, length] = sum(work)

    # Telling ids apart takes a few looks more or less, not thirty times as many.
    for command in commands:
        assert counts[command, LONG] <= 2 * counts[command, SHORT], command
    assert counts["log chat -n 20", SHORT] > 20


def test_a_listing_looks_only_into_the_journals_it_shows(tmp_path, work, capsys):
    counts = []
    for threads in (20, 200):
        path = str(tmp_path / f"{threads}.db")
        with holdfast.open(path, durability="normal") as store:
            for n in range(threads):
                store.thread(f"t{n}").save({"n": n})
        work.clear()
        assert main(["threads", "-n", "10", "--store", path]) == 0
        counts.append(len(work))

    assert counts[0] == counts[1]
    assert capsys.readouterr().out.count("@1") == 20
