"""Families with many forks: pages, lanes and the picture of the whole."""

from __future__ import annotations

import pytest
from asking import asked

import holdfast
from inner.views import minimap

FORKS = 60


@pytest.fixture(scope="module")
def viewer(tmp_path_factory):
    """A thread of 120 steps, a fork at every second one, and a part was rewound."""
    path = str(tmp_path_factory.mktemp("many") / "agents.db")
    with holdfast.open(path, durability="normal") as store:
        thread = store.thread("trunk")
        saved = [thread.append(log=[number]) for number in range(2 * FORKS)]
        for number, start in enumerate(saved[::2]):
            thread.fork(f"fork-{number}", start).append(log=["tried"])
        thread.rewind("@~10")
        thread.append(log=["anew"])
    with asked(path) as found:
        yield found


@pytest.fixture(scope="module")
def rows(viewer):
    return viewer.get("log", thread="trunk", limit=1000)["rows"]


def test_pages_of_many_forks_are_the_whole_in_pieces(viewer, rows):
    paged, cursor = [], {}
    while cursor is not None:
        page = viewer.get("log", thread="trunk", limit=50, **cursor)
        paged += page["rows"]
        cursor = page["next"] and {"cursor": page["next"]}

    assert paged == rows
    assert len(rows) == page["total"] == 3 * FORKS + 1
    assert max(row["lane"] for row in rows) > FORKS // 2


def test_a_page_in_the_middle_knows_the_line_of_the_head(viewer, rows):
    kept = {row["id"] for row in rows if row["on_line"]}
    rewound = next(
        row for row in rows if row["thread"] == "trunk" and row["step"] > 115
    )

    page = viewer.get("log", thread="trunk", at=rewound["id"], limit=100)

    shown = page["rows"]
    assert [row["id"] for row in shown if row["on_line"]] == [
        row["id"] for row in shown if row["id"] in kept
    ]
    assert shown[0]["id"] == rows[page["position"]]["id"]


def test_a_page_begins_at_a_checkpoint_of_any_thread_with_the_lanes_above_it(
    viewer, rows
):
    fork = next(row for row in rows if row["thread"] == "fork-40")
    old = next(row for row in rows if row["thread"] == "trunk" and row["step"] == 60)

    for asked_for in (fork, old):
        page = viewer.get("log", thread="fork-3", at=asked_for["id"], limit=80)
        same = rows[page["position"] :][:80]
        assert asked_for["id"] in [row["id"] for row in page["rows"]]
        assert [row["id"] for row in page["rows"]] == [row["id"] for row in same]
        assert [sum(row["lanes"]) for row in page["rows"]] == [
            sum(row["lanes"]) for row in same
        ]


def test_children_say_whether_some_may_be_missing(viewer, rows):
    trunk = {row["step"]: row["id"] for row in rows if row["on_line"]}

    rewound = viewer.get("checkpoint", id=trunk[100])
    last = viewer.get("checkpoint", id=trunk[110])

    assert rewound["children_complete"] is False
    assert last["children_complete"] is True
    assert [(c["step"], c["thread"]) for c in last["children"]] == [
        (111, "trunk"),
        (111, "trunk"),
    ]


def test_the_line_of_an_old_checkpoint_is_as_long_as_a_prune_left_it(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        thread = store.thread("long")
        saved = [thread.append(log=[number]) for number in range(40)]
        for number in (9, 19, 20):
            thread.label(f"kept-{number}", saved[number])
        store.prune(holdfast.Retention(last=5))
    with asked(path) as viewer:
        line = viewer.get("line", thread="long", tip=saved[20].id)
        whole = viewer.get("line", thread="long", tip=saved[9].id)

    assert line["length"] == len(line["items"])
    assert [item["step"] for item in line["items"]][-3:] == [10, 20, 21]
    assert whole["length"] == len(whole["items"])


def test_a_page_knows_the_line_of_a_fork_whose_origin_is_deleted(tmp_path):
    path = str(tmp_path / "agents.db")
    with holdfast.open(path) as store:
        thread = store.thread("origin")
        saved = [thread.append(log=[number]) for number in range(30)]
        thread.fork("heir").append(log=["mine"])
        thread.delete()
    with asked(path) as viewer:
        page = viewer.get("log", thread="heir", at=saved[2].id)

    assert all(row["on_line"] for row in page["rows"])


def test_the_picture_of_a_large_family_is_made_of_samples(viewer, rows, monkeypatch):
    whole = viewer.get("minimap", thread="trunk", buckets=40)
    monkeypatch.setattr(minimap, "MOST_ROWS", 50)

    some = viewer.get("minimap", thread="trunk", buckets=40)
    of_fork = viewer.get("minimap", thread="fork-3", buckets=40)

    ids = {row["id"] for row in rows}
    assert (whole["sampled"], some["sampled"]) == (False, True)
    for found in (whole, some, of_fork):
        assert sum(bucket["count"] for bucket in found["buckets"]) == len(rows)
        assert {bucket["first"] for bucket in found["buckets"]} <= ids
    assert sum(b["heads"] for b in some["buckets"]) == FORKS + 1
    assert sum(b["forks"] for b in some["buckets"]) == FORKS
