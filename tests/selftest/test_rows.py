"""The selftest passes a sound store, and notices one that breaks a promise."""

from __future__ import annotations

import pytest

from holdfast.selftest import ROWS
from holdfast.selftest._rivals import Operation, _digest, contradictions
from support import servers
from support.programs import run_program

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
    "tampering": 8,
    "encryption": 1,
    "network": 10,
    "scopes-rescued": 4,
}
BROKEN = {
    "dropping": {
        "kills": 12,
        # Six wins for each of sixteen processes: the fifth that follows one is dropped.
        "compare-and-swap": 96,
        "history": 60,
        "sharing": 24,
        "clocks": 20,
        "names": 30,
        "endurance": 100,
        "foreign-tools": 3,
    },
    "in-two": {"boundaries": 40, "disk-failures": 60},
    "altering": {"fidelity": 80},
    "oldest-first": {"clocks": 20},
    "not-synced": {"power-cuts": 30},
    "names-not-synced": {"power-cuts": 30},
    "intents-not-synced": {"power-cuts": 120},
    "logging": {"erasure": 1},
    "unencrypted": {"encryption": 1},
    "believing": {"tampering": 8, "bit-rot": 24},
    "executing": {"code-execution": 500},
    "unlocked": {"network": 20},
    "forgetful": {"scopes-rescued": 1},
}
# How a row begins to tell that it failed itself, or was ended.
FAILED = ("raised", "it did not end", "its process ended")
NOTICED = ("raised Corrupt", "raised FormatMismatch")
BROKEN_ON_A_SERVER = {
    "dropping-above": {"ended-connections": 5},
    "acknowledging": {"hung-server": 2},
}


# Those that are tried by one program: it takes as long to start one as to run a row.
TOGETHER = [
    ["dropping", "altering", "oldest-first", "not-synced", "logging", "unencrypted"],
    ["in-two", "intents-not-synced"],
    ["believing", "unlocked", "forgetful"],
    ["executing", "names-not-synced"],  # these change the whole program
]


def run(tmp_path, broken, kind="file"):
    wanted = [
        f"{sabotage}:{name}:{count}"
        for sabotage, rows in broken.items()
        for name, count in rows.items()
    ]
    return run_program("selftest_rows", kind, tmp_path, *wanted)


def test_a_sound_store_holds_every_promise(tmp_path):
    results = run(tmp_path, {"sound": FEW})

    assert [r for r in results if r["verdict"] != "holds"] == []
    assert all(r["count"] >= FEW[r["row"]] for r in results)


@pytest.mark.parametrize("sabotages", TOGETHER, ids="+".join)
def test_a_store_that_breaks_a_promise_is_noticed_by_each_row(sabotages, tmp_path):
    results = run(tmp_path, {name: BROKEN[name] for name in sabotages})

    assert [r for r in results if r["verdict"] != "broken"] == []
    examples = [text for r in results for text in r["examples"]]
    # That the store itself noticed is as good; any other error is the row's own.
    failed = [text for text in examples if text.startswith(FAILED)]
    assert [text for text in failed if not text.startswith(NOTICED)] == []


@pytest.mark.parametrize("sabotage", BROKEN_ON_A_SERVER)
def test_so_is_one_on_a_server(sabotage, tmp_path):
    server = servers.shared(servers.NAMES[-1])

    results = run(tmp_path, {sabotage: BROKEN_ON_A_SERVER[sabotage]}, server)

    assert [r["verdict"] for r in results] == ["broken"]


def test_every_row_has_a_store_that_it_must_notice():
    broken = [*BROKEN.values(), *BROKEN_ON_A_SERVER.values()]

    assert {name for rows in broken for name in rows} == {row.name for row in ROWS}
    assert {name for names in TOGETHER for name in names} == BROKEN.keys()


def test_the_rows_have_the_numbers_of_the_scorecard():
    assert [row.number for row in ROWS] == list(range(1, len(ROWS) + 1))
    assert all(row.quick <= row.full for row in ROWS)


# --- the checker of histories ---------------------------------------------------------


def appended(item, begin, end):
    return Operation(item, begin, end)


def read(items, begin, end):
    return Operation("", begin, end, len(items), _digest(items))


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
