"""The selftest passes a sound store; `test_sabotages` has those that it must not."""

from __future__ import annotations

import pytest

from holdfast.testing.trials import ROWS
from holdfast.testing.trials.rivals import Operation, contradictions, digest_of
from support import servers
from support.programs import run_program

pytestmark = pytest.mark.processes

# Few trials, but of every row that can be run on a file.
FEW = {
    "kills": 4,
    "boundaries": 6,
    "power-cuts": 4,
    "disk-failures": 6,
    "compare-and-swap": 16,
    "history": 60,
    "sharing": 24,
    "clocks": 20,
    "bit-rot": 24,
    "code-execution": 500,
    "names": 30,
    "fidelity": 80,
    "erasure": 1,
    "endurance": 100,
    "foreign-tools": 3,
    "tampering": 13,
    "encryption": 1,
    "network": 10,
    "scopes-rescued": 4,
    "loop": 9,
    "grants": 10,
    "files": 40,
}
# What is tried in a folder and on a server as well.
EVERYWHERE = {"sharing": 24, "loop": 5, "grants": 5}


def test_a_sound_store_holds_every_promise(tmp_path):
    wanted = [f"sound:{name}:{count}:file" for name, count in FEW.items()]
    for store in ("dir", servers.shared(servers.NAMES[-1])):
        wanted += [f"sound:{name}:{n}:{store}" for name, n in EVERYWHERE.items()]

    results = run_program("selftest_rows", tmp_path, *wanted)

    assert [r for r in results if r["verdict"] != "holds"] == []
    few = {"file": FEW}
    assert all(r["count"] >= few.get(r["kind"], EVERYWHERE)[r["row"]] for r in results)


def test_the_rows_have_the_numbers_of_the_scorecard():
    assert [row.number for row in ROWS] == list(range(1, len(ROWS) + 1))
    assert all(row.quick <= row.full for row in ROWS)


# --- the checker of histories ---------------------------------------------------------


def appended(item, begin, end):
    return Operation(item, begin, end)


def read(items, begin, end):
    return Operation("", begin, end, len(items), digest_of(items))


LOG = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("done", "log"),
    [
        ([appended("a", 1, 2), appended("b", 1, 3), read(["a"], 1, 4)], LOG),
        ([appended("c", 1, 0), read([], 1, 2), read(["a", "b"], 3, 4)], LOG),
    ],
)
def test_histories_that_one_order_explains(done, log):
    assert list(contradictions(done, log, [1, 2, 3])) == []


@pytest.mark.parametrize(
    ("done", "log", "found"),
    [
        ([appended("x", 1, 2)], LOG, "x is lost"),
        ([appended("b", 1, 2), read(["a"], 3, 4)], LOG, "a read came to 1, after 2"),
        ([appended("b", 1, 2), appended("a", 3, 4)], LOG, "a came to 1, after 2"),
        ([read(["a", "c"], 1, 2)], LOG, "is no beginning of the list"),
        ([], ["a", "b", "a"], "1 items are there twice"),
        ([], ["a", "b"], "have a gap"),
    ],
)
def test_histories_that_no_order_explains(done, log, found):
    assert any(found in text for text in contradictions(done, log, [1, 2, 3]))
