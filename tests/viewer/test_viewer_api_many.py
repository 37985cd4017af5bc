"""Families with many forks: pages, lanes and the picture of the whole."""

from __future__ import annotations

import pytest
from asking import asked

import holdfast
from holdfast.views import minimap

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
