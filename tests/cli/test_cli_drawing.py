"""What lines are made of: lanes of a tree, harmless text, aligned columns."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

import pytest
import stores
from hypothesis import given
from hypothesis import strategies as st

from inner.cli import (
    ASCII,
    UNICODE,
    aligned,
    cut,
    drawn,
    escaped,
    harmless,
    one_line,
    width,
)
from inner.views import laid_out

DANGER = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


@dataclass(frozen=True)
class Node:
    id: str
    parent: str | None


def tree(*pairs):
    return [Node(*pair) for pair in pairs]


def picture(nodes, glyphs=UNICODE):
    rows = laid_out(nodes)
    return [drawn(row, glyphs, row.node.id if row.node else "") for row in rows]


# --- lanes ----------------------------------------------------------------------------


def test_a_line_is_one_lane():
    assert picture(tree(("c", "b"), ("b", "a"), ("a", None))) == ["c", "b", "a"]


def test_lanes_join_where_forks_began():
    nodes = tree(
        ("f", "c"), ("e", "c"), ("d", "b"), ("c", "b"), ("b", "a"), ("a", None)
    )

    assert picture(nodes) == ["f", "│ e", "│ │ d", "├─╯ │", "c   │", "├───╯", "b", "a"]


def test_several_lanes_join_at_once():
    nodes = tree(("d", "a"), ("c", "a"), ("b", "a"), ("a", None))

    assert picture(nodes) == ["d", "│ c", "│ │ b", "├─┴─╯", "a"]
    assert picture(nodes, ASCII) == ["d", "| c", "| | b", "|-+-/", "a"]


def test_a_lane_in_between_is_crossed():
    nodes = tree(("f", "c"), ("e", "b"), ("d", "c"), ("c", "a"), ("b", "a"))

    assert picture(nodes) == ["f", "│ e", "│ │ d", "├─┼─╯", "c │", "│ b"]


def test_a_lane_that_ended_is_used_again():
    nodes = tree(("e", None), ("d", "b"), ("c", "a"), ("b", None), ("a", None))

    assert picture(nodes) == ["e", "d", "│ c", "b │", "  a"]


@st.composite
def trees(draw):
    """Nodes, newest first, each with a parent that is older."""
    size = draw(st.integers(1, 30))
    parents = [None, *(draw(st.integers(-1, n - 1)) for n in range(1, size))]
    pairs = [
        (n, p if p is not None and p >= 0 else None) for n, p in enumerate(parents)
    ]
    return [Node(str(n), None if p is None else str(p)) for n, p in reversed(pairs)]


@given(trees())
def test_every_node_stands_in_the_lane_its_children_lead_to(nodes):
    rows = list(laid_out(nodes))
    lane = {row.node.id: row.at for row in rows if row.node}
    children = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node.id)

    assert [row.node for row in rows if row.node] == nodes
    for parent, found in children.items():
        if parent is not None:
            assert lane[parent] == min(lane[child] for child in found)
    for row in rows:
        assert row.lanes[row.at]
        assert all(row.lanes[end] and end > row.at for end in row.ending)


# --- harmless text --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\dcs", "dcs"),
        ("\x1b_apc\x9cend", "end"),
        ("\x1b", r"\x1b"),
        ("\x1b]never ended", r"\x1b]never ended"),
        ("\x1bc reset", r"\x1bc reset"),
        ("a\rb\x08\x7f\x85", r"a\x0db\x08\x7f\x85"),
        ("\u202eexe\u2066", "<U+202E>exe<U+2066>"),
        ("\ud83d", "<U+D83D>"),
        ("[bold]not markup[/bold]", "[bold]not markup[/bold]"),
        ("東京 👩\u200d🚒 é", "東京 👩\u200d🚒 é"),
        ("\x1b\x1b[0m[31m", r"\x1b[31m"),
    ],
)
def test_what_would_steer_a_terminal_is_removed_or_shown(stored, shown):
    assert harmless(stored) == shown


@given(st.text(st.characters()))
def test_no_text_is_left_with_anything_dangerous(text):
    shown = harmless(text)

    assert not DANGER.search(shown)
    assert harmless(shown) == shown
    assert "\n" not in one_line(text)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_json_means_the_same_after_its_dangers_are_escaped(text):
    written = json.dumps(text, ensure_ascii=False)

    assert json.loads(escaped(written)) == text
    assert not DANGER.search(escaped(written))


@given(st.text(), st.integers(1, 30))
def test_a_cut_line_fits(text, columns):
    kept = cut(one_line(text), columns, "…")

    assert width(kept) <= columns
    assert kept == one_line(text) or kept.endswith("…")


def test_columns_are_aligned_by_what_is_shown():
    rows = [
        [("東京", "name"), ("1", "")],
        [("\x1b[1mx\n", "name"), ("22", ""), ("end", "")],
        [("across all of it", "")],
    ]

    lines = ["".join(text for text, _ in line) for line in aligned(rows, right={1})]

    assert lines == ["東京   1", "x\\n   22  end", "across all of it"]


def test_the_hostile_text_of_the_other_tests_is_hostile():
    assert DANGER.search(stores.HOSTILE)
