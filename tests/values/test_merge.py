"""Three-way merges: what is taken from which side, and what stays a conflict.

The rows of `CASES` are the cases that every three-way merge of JSON values has to
decide: scalars, members that one side lacks, null, numbers, mappings and lists.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import ABSENT, MergeConflict
from inner.messages import is_message
from inner.values import ElementId, Merged, Sides, same, three_way

State: TypeAlias = Any


def merged(base: State, ours: State, theirs: State, decide: Any = None) -> Merged:
    sides = Sides(base, ours, theirs)
    return three_way(sides, decide or (lambda conflict: conflict), is_message)


def places(found: Merged) -> list[str]:
    return [conflict.where for conflict in found.conflicts]


def said(text: str, role: str = "user") -> dict[str, str]:
    return {"role": role, "content": text}


# Name, base, ours, theirs, and the merged value.
CASES = [
    ("nothing changed", {"a": 1}, {"a": 1}, {"a": 1}, {"a": 1}),
    ("one side sets a value", {"a": 1}, {"a": 2}, {"a": 1}, {"a": 2}),
    ("both set the same value", {"a": 1}, {"a": 2}, {"a": 2}, {"a": 2}),
    ("each sets another", {"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2},
     {"a": 2, "b": 2}),
    ("one side adds", {}, {"a": 1}, {}, {"a": 1}),
    ("each adds another", {}, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
    ("both add the same", {}, {"a": [1]}, {"a": [1]}, {"a": [1]}),
    ("one side removes", {"a": 1, "b": 1}, {"b": 1}, {"a": 1, "b": 1}, {"b": 1}),
    ("both remove", {"a": 1, "b": 1}, {"b": 1}, {"b": 1}, {"b": 1}),
    ("one removes, one adds", {"a": 1}, {}, {"a": 1, "b": 2}, {"b": 2}),
    ("null is a value", {"a": 1}, {"a": None}, {"a": 1}, {"a": None}),
    ("a member set to null is not removed", {"a": None}, {}, {"a": None}, {}),
    ("inside of a mapping", {"m": {"a": 1, "b": 1}}, {"m": {"a": 2, "b": 1}},
     {"m": {"a": 1, "b": 2}}, {"m": {"a": 2, "b": 2}}),
    ("mappings that both added", {}, {"m": {"a": 1}}, {"m": {"b": 2}},
     {"m": {"a": 1, "b": 2}}),
    ("a list that one side changed", [1, 2], [1, 2, 3], [1, 2], [1, 2, 3]),
    ("a value became a list", {"a": 1}, {"a": [1]}, {"a": 1}, {"a": [1]}),
    ("the whole state is one value", "old", "new", "old", "new"),
    ("keys that need escapes", {"a/b": 1, "~": 1}, {"a/b": 2, "~": 1},
     {"a/b": 1, "~": 2}, {"a/b": 2, "~": 2}),
]  # fmt: skip
# Name, base, ours, theirs, and where the conflicts are.
CONFLICTS = [
    ("both set another value", {"a": 1}, {"a": 2}, {"a": 3}, ["a"]),
    ("both add another value", {}, {"a": 1}, {"a": 2}, ["a"]),
    ("one removes what the other changed", {"a": 1}, {}, {"a": 2}, ["a"]),
    ("one removes what the other changed inside", {"m": {"a": 1}}, {},
     {"m": {"a": 2}}, ["m"]),
    ("null and a value", {"a": 1}, {"a": None}, {"a": 2}, ["a"]),
    ("a mapping and a list", {"a": {}}, {"a": {"b": 1}}, {"a": [1]}, ["a"]),
    ("one number in two types", {"a": 1}, {"a": 2}, {"a": 2.0}, ["a"]),
    ("true is not 1", {"a": 0}, {"a": 1}, {"a": True}, ["a"]),
    ("zero is not minus zero", {"a": 1.0}, {"a": 0.0}, {"a": -0.0}, ["a"]),
    ("lists without ids", {"a": [1]}, {"a": [1, 2]}, {"a": [1, 3]}, ["a"]),
    ("deep inside", {"m": {"n": {"a": 1, "b": 1}}}, {"m": {"n": {"a": 2, "b": 2}}},
     {"m": {"n": {"a": 3, "b": 1}}}, ["m.n.a"]),
    ("several at once", {"a": 1, "b": 1, "c": 1}, {"a": 2, "b": 2, "c": 2},
     {"a": 3, "b": 2, "c": 3}, ["a", "c"]),
    ("the whole state", 1, 2, 3, ["(root)"]),
    ("mappings whose keys are no texts", {"a": {1: 1, 2: 2}}, {"a": {1: 0, 2: 2}},
     {"a": {1: 1, 2: 0}}, ["a"]),
    ("tuples", {"a": (1, 2)}, {"a": (0, 2)}, {"a": (1, 0)}, ["a"]),
]  # fmt: skip


class TestCases:
    @pytest.mark.parametrize(
        ("base", "ours", "theirs", "expected"),
        [pytest.param(*rest, id=name) for name, *rest in CASES],
    )
    def test_what_does_not_contradict_is_merged(self, base, ours, theirs, expected):
        for found in (merged(base, ours, theirs), merged(base, theirs, ours)):
            assert found.conflicts == ()
            assert same(found.value, expected)

    @pytest.mark.parametrize(
        ("base", "ours", "theirs", "expected"),
        [pytest.param(*rest, id=name) for name, *rest in CONFLICTS],
    )
    def test_what_contradicts_is_a_conflict(self, base, ours, theirs, expected):
        found = merged(base, ours, theirs)

        assert places(found) == expected
        assert places(merged(base, theirs, ours)) == expected

    def test_a_conflict_has_its_path_and_all_three_sides(self):
        [conflict] = merged({"m": {"a": 1}}, {"m": {}}, {"m": {"a": 2}}).conflicts

        assert conflict == MergeConflict(("m", "a"), 1, ABSENT, 2)
        assert str(conflict) == "! m.a  ours absent, theirs 2, base 1"

    def test_a_decision_is_put_where_the_conflict_is(self):
        base = {"a": 1, "b": 1, "c": 1}
        ours, theirs = {"a": 2, "b": 2, "c": 0}, {"a": 3, "b": 3, "c": 1}
        choices = {"a": 9, "b": ABSENT}

        found = merged(base, ours, theirs, lambda conflict: choices[conflict.where])

        assert found.value == {"a": 9, "c": 0}
        assert [conflict.where for conflict in found.decided] == ["a", "b"]
        assert found.conflicts == ()


def tasks(*ids: State) -> list[dict[str, State]]:
    return [{"id": id_, "done": False} for id_ in ids]


class TestLists:
    def test_elements_are_merged_by_their_ids(self):
        base = [{"id": 1, "title": "a", "done": False}, {"id": 2, "title": "b"}]
        ours = [{"id": 1, "title": "A", "done": False}, {"id": 2, "title": "b"}]
        theirs = [{"id": 2, "title": "b"}, {"id": 1, "title": "a", "done": True}]

        found = merged(base, ours, theirs)

        assert found.conflicts == ()
        assert found.value == [
            {"id": 2, "title": "b"},
            {"id": 1, "title": "A", "done": True},
        ]

    def test_what_each_side_adds_stays_behind_its_predecessor(self):
        base, ours = tasks("a", "b"), tasks("a", "x", "y", "b")
        theirs = tasks("m", "a", "b", "z")

        assert merged(base, ours, theirs).value == tasks("m", "a", "x", "y", "b", "z")

    def test_two_runs_at_one_place_are_kept_whole_in_the_order_of_their_ids(self):
        base, ours, theirs = tasks("a"), tasks("a", "d", "b"), tasks("a", "c", "e")

        one, other = merged(base, ours, theirs), merged(base, theirs, ours)

        assert one.value == other.value == tasks("a", "c", "e", "d", "b")

    def test_an_element_is_removed_unless_the_other_side_changed_it(self):
        base = tasks("a", "b", "c")
        theirs = [tasks("a")[0], {"id": "b", "done": True}, tasks("c")[0]]

        found = merged(base, tasks("c"), theirs)

        assert places(found) == ['[id="b"]']
        assert found.conflicts[0].path == (ElementId("b"),)
        assert found.value == tasks("c")

    def test_two_other_orders_are_a_conflict_of_the_list(self):
        base = {"tasks": tasks("a", "b", "c")}
        ours, theirs = {"tasks": tasks("b", "a", "c")}, {"tasks": tasks("a", "c", "b")}

        assert places(merged(base, ours, theirs)) == ["tasks"]

    def test_the_path_of_an_element_has_its_id(self):
        base = {"tasks": [{"id": 7, "title": "a"}]}
        ours, theirs = ({"tasks": [{"id": 7, "title": t}]} for t in "bc")

        assert places(merged(base, ours, theirs)) == ["tasks[id=7].title"]

    @pytest.mark.parametrize(
        "elements",
        [
            pytest.param([{"id": 1}, {"id": 1}], id="an id twice"),
            pytest.param([{"id": 1}, {"name": "b"}], id="an element without an id"),
            pytest.param([{"id": True}], id="an id that is no number or text"),
        ],
    )
    def test_without_an_id_of_its_own_for_each_element_a_list_is_one_value(
        self, elements
    ):
        ours, theirs = [*elements, {"id": 8}], [*elements, {"id": 9}]

        assert places(merged(elements, ours, theirs)) == ["(root)"]

    def test_a_transcript_is_never_interleaved_although_its_messages_have_ids(self):
        start = [{**said("hello"), "id": "m1"}]
        ours = [*start, {**said("one", "assistant"), "id": "m2"}]
        theirs = [*start, {**said("two", "assistant"), "id": "m3"}]

        found = merged({"messages": start}, {"messages": ours}, {"messages": theirs})

        assert places(found) == ["messages"]
        assert found.value == {"messages": ours}

    def test_a_transcript_that_one_side_went_on_with_is_taken(self):
        start, more = [said("hello")], [said("hello"), said("hi", "assistant")]

        found = merged(
            {"messages": start, "n": 1},
            {"messages": start, "n": 2},
            {"messages": more, "n": 1},
        )

        assert found.value == {"messages": more, "n": 2}
        assert found.conflicts == ()


scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from("ab")
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
elements = st.lists(
    st.fixed_dictionaries({"id": st.integers(1, 5)}, optional={"v": scalars}),
    max_size=4,
    unique_by=lambda element: element["id"],
)
states = values | elements | st.dictionaries(st.sampled_from("xyz"), values | elements)


def swapped(conflict: MergeConflict) -> MergeConflict:
    return MergeConflict(conflict.path, conflict.base, conflict.theirs, conflict.ours)


def by_place(conflicts: tuple[MergeConflict, ...]) -> dict[str, MergeConflict]:
    return {conflict.where: conflict for conflict in conflicts}


class TestProperties:
    @given(states, states)
    def test_merging_what_is_unchanged_gives_the_other_side(self, base, changed):
        for found in (merged(base, changed, base), merged(base, base, changed)):
            assert found.conflicts == ()
            assert same(found.value, changed)

    @given(states, states)
    def test_both_sides_alike_give_that_side(self, base, changed):
        found = merged(base, changed, changed)

        assert found.conflicts == ()
        assert same(found.value, changed)

    @given(states, states, states)
    def test_it_is_symmetric_up_to_the_names(self, base, one, other):
        found, mirrored = merged(base, one, other), merged(base, other, one)

        flipped = by_place(tuple(map(swapped, mirrored.conflicts)))
        assert flipped.keys() == by_place(found.conflicts).keys()
        for where, conflict in by_place(found.conflicts).items():
            assert same(conflict.ours, flipped[where].ours)
            assert same(conflict.theirs, flipped[where].theirs)

    @given(states, states, states)
    def test_it_does_not_matter_which_side_is_ours(self, base, one, other):
        found = merged(base, one, other, lambda _: "decided")
        mirrored = merged(base, other, one, lambda _: "decided")

        assert same(found.value, mirrored.value)

    @given(states, states, states)
    def test_with_one_side_preferred_nothing_is_left_to_decide(self, base, one, other):
        ours = merged(base, one, other, lambda conflict: conflict.ours)
        theirs = merged(base, other, one, lambda conflict: conflict.theirs)

        assert ours.conflicts == theirs.conflicts == ()
        assert same(ours.value, theirs.value)
