"""What `diff` reports, how it prints, and that its patch turns old into new."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import math
import uuid
from collections.abc import Hashable
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.diff import Change, Diff, diff, render_path

# A state is whatever a caller saves, and these tests look into it freely.
State: TypeAlias = Any

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
SAME_NOON_ELSEWHERE = NOON.astimezone(dt.timezone(dt.timedelta(hours=1)))


def message(number: int, role: str = "user") -> dict[str, object]:
    return {"role": role, "content": f"message {number}"}


def exact(value: State) -> Hashable:
    """Compares like the value, but type by type, whatever the order of keys."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return kind, frozenset((exact(key), exact(item)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return kind, tuple(map(exact, value))
    if isinstance(value, set | frozenset):
        return kind, frozenset(map(exact, value))
    return kind, repr(value)


def found(state: State, path: tuple[State, ...]) -> State:
    for part in path:
        state = state[part]
    return state


def patched(document: State, operations: list[dict[str, State]]) -> State:
    """RFC 6902 for add, remove and replace, on a copy."""
    document = copy.deepcopy(document)
    for operation in operations:
        document = _applied(document, operation)
    return document


def _applied(document: State, operation: dict[str, State]) -> State:
    if operation["path"] == "":
        return operation["value"]
    parts = operation["path"].removeprefix("/").split("/")
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in parts]
    target = document
    for part in parents:
        target = target[_key(target, part)]
    _apply_at(target, _key(target, last), operation)
    return document


def _key(target: State, part: str) -> str | int:
    assert type(target) in (list, dict)
    return int(part) if isinstance(target, list) else part


def _apply_at(target: State, key: State, operation: dict[str, State]) -> None:
    match operation["op"], target:
        case "add", list():
            assert key <= len(target)
            target.insert(key, operation["value"])
        case "add", _:
            assert key not in target
            target[key] = operation["value"]
        case "replace", _:
            assert key in (range(len(target)) if isinstance(target, list) else target)
            target[key] = operation["value"]
        case _:
            del target[key]


def nested(levels: int, leaf: object, kind: type) -> object:
    for _ in range(levels):
        leaf = {"in": leaf} if kind is dict else kind([leaf])
    return leaf


atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([0.0, -0.0, 1.0, math.inf, float("nan")]),
    st.text("ab/~\x00é", max_size=3),
    st.binary(max_size=2),
    st.decimals(allow_nan=True, places=1, min_value=0, max_value=1),
    st.sampled_from([decimal.Decimal("sNaN"), decimal.Decimal("1.00")]),
    st.sampled_from([NOON, SAME_NOON_ELSEWHERE, NOON.replace(tzinfo=None)]),
    st.sampled_from([uuid.UUID(int=1), uuid.UUID(int=2)]),
    st.frozensets(st.sampled_from([0, 1, False, 2.0, "a"]), max_size=3),
    st.sets(st.sampled_from([0, True, 2.0, (1,), (1.0,)]), max_size=3),
)
keys = st.one_of(
    st.sampled_from(["", "a", "b", "a/b", "~", "~1", "0", "-"]),
    st.sampled_from([0, 1, True, 1.0, math.nan, None, (1,), (True,), b"a"]),
)
states: st.SearchStrategy[State] = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner, max_size=6),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
        st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    ),
    max_leaves=20,
)
few = st.sampled_from([0, 1, True, "x", {"a": 1}, {"a": 1.0}, {"b": [1]}, [1], [2], ()])
# Copied, because a patch works in place and a value held twice would change twice.
histories = st.lists(few.map(copy.deepcopy), max_size=14)


@given(states, states)
def test_the_patch_turns_old_into_new_exactly(old: State, new: State) -> None:
    wanted = exact(new)

    result = patched(old, diff(old, new).patch())

    assert exact(result) == wanted
    assert exact(new) == wanted


@given(histories, histories, histories, histories)
def test_the_patch_of_similar_lists_turns_old_into_new_exactly(
    start: State, gone: State, come: State, end: State
) -> None:
    old = {"list": [*start, *gone, *end]}
    new = {"list": [*start, *come, *end, {"a": [*gone]}]}

    result = patched(old, diff(old, new).patch())

    assert exact(result) == exact(new)


@given(states, states)
def test_a_removed_path_leads_into_old_and_every_other_into_new(
    old: State, new: State
) -> None:
    changes = diff(old, new).changes

    assert all(found(old, c.path) is c.old for c in changes if c.op == "removed")
    assert all(found(new, c.path) is c.new for c in changes if c.op != "removed")


@given(states)
def test_a_state_does_not_differ_from_its_copy(state: State) -> None:
    assert not diff(state, state)
    assert not diff(state, copy.deepcopy(state))


@given(states, states)
def test_there_is_a_difference_exactly_if_the_states_are_not_the_same(
    old: State, new: State
) -> None:
    assert bool(diff(old, new)) == (exact(old) != exact(new))


@given(states, states)
def test_every_difference_prints_one_line_a_change_and_the_counts(
    old: State, new: State
) -> None:
    difference = diff(old, new)
    *lines, counts = str(difference).split("\n")

    assert len(lines) == len(difference)
    assert all(line.isprintable() for line in lines)
    assert counts.isprintable()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (1, 1.0),
        (1, True),
        (0, False),
        (0.0, -0.0),
        ((1, 2), [1, 2]),
        ({1, 2}, frozenset({1, 2})),
        ({1}, {True}),
        ("1", b"1"),
        (None, {}),
        (decimal.Decimal("1.0"), decimal.Decimal("1.00")),
        (NOON, SAME_NOON_ELSEWHERE),
        ({1: "x"}, {True: "x"}),
        ({(1,): "x"}, {(1.0,): "x"}),
    ],
)
def test_equal_values_of_another_type_or_notation_differ(
    old: State, new: State
) -> None:
    assert diff(old, new)
    assert diff([old], [new])
    assert diff({"a": old}, {"a": new})


@pytest.mark.parametrize(
    "make",
    [
        lambda: float("nan"),
        lambda: decimal.Decimal("NaN"),
        lambda: decimal.Decimal("sNaN"),
        lambda: {float("nan")},
        lambda: {float("nan"): float("nan")},
    ],
)
def test_nan_equals_nan(make: State) -> None:
    assert not diff([make()], [make()])


def test_the_order_of_keys_does_not_count() -> None:
    assert not diff({"a": 1, "b": 2}, {"b": 2, "a": 1})


def test_a_root_of_another_kind_is_one_change_with_an_empty_path() -> None:
    difference = diff({"a": 1}, [1])

    assert difference.changes == (Change("changed", (), {"a": 1}, [1]),)
    assert difference.patch() == [{"op": "replace", "path": "", "value": [1]}]


def test_changes_are_sorted_into_added_removed_and_changed() -> None:
    difference = diff({"gone": 1, "kept": 2, "same": 0}, {"kept": 3, "same": 0, "n": 4})

    assert difference.added == (Change("added", ("n",), None, 4),)
    assert difference.removed == (Change("removed", ("gone",), 1, None),)
    assert difference.changed == (Change("changed", ("kept",), 2, 3),)
    assert len(difference) == len(difference.changes)


def test_an_appended_message_is_one_addition() -> None:
    old = [message(n) for n in range(10_000)]
    new = [*copy.deepcopy(old), message(10_000)]

    assert diff(old, new).changes == (
        Change("added", (10_000,), None, message(10_000)),
    )


def test_an_edited_message_is_a_change_inside_it() -> None:
    old = [message(n) for n in range(10_000)]
    new = copy.deepcopy(old)
    new[5_000]["content"] = "edited"

    assert diff(old, new).changes == (
        Change("changed", (5_000, "content"), "message 5000", "edited"),
    )


def test_an_insertion_in_the_middle_is_one_addition() -> None:
    old = [message(1), message(2), message(3)]
    new = [message(1), message(0), message(2), message(3)]

    assert diff(old, new).changes == (Change("added", (1,), None, message(0)),)


def test_a_removal_in_the_middle_is_one_removal() -> None:
    assert diff([1, 2, 3], [1, 3]).changes == (Change("removed", (1,), 2, None),)


def test_insertions_removals_and_edits_in_one_list_stay_apart() -> None:
    old = [message(n) for n in range(6)]
    new = [message(9), *copy.deepcopy(old[:2]), *copy.deepcopy(old[3:]), message(8)]
    new[4]["role"] = "tool"

    assert diff(old, new).changes == (
        Change("added", (0,), None, message(9)),
        Change("removed", (2,), message(2), None),
        Change("changed", (4, "role"), "user", "tool"),
        Change("added", (6,), None, message(8)),
    )


def test_a_long_history_that_was_cut_and_continued_keeps_what_stayed() -> None:
    old = [message(n) for n in range(5_000)]
    new = [old[0], *copy.deepcopy(old[2_000:]), message(5_000)]

    difference = diff(old, new)

    assert [change.path for change in difference.removed] == [
        (n,) for n in range(1, 2_000)
    ]
    assert difference.added == (Change("added", (3_001,), None, message(5_000)),)
    assert not difference.changed


def test_a_long_reordered_list_is_compared_place_by_place() -> None:
    old = list(range(1_200))
    new = old[::-1]

    difference = diff(old, new)

    assert len(difference.changed) == len(difference) == len(old)
    assert patched(old, difference.patch()) == new


def test_a_moved_element_is_removed_and_added() -> None:
    assert diff([1, 2, 3, 4], [2, 3, 4, 1]).changes == (
        Change("removed", (0,), 1, None),
        Change("added", (3,), None, 1),
    )


def test_a_list_element_of_another_kind_is_removed_and_added() -> None:
    assert diff([0, {"a": 1}, 9], [0, [1], 9]).changes == (
        Change("removed", (1,), {"a": 1}, None),
        Change("added", (1,), None, [1]),
    )


def test_a_replaced_scalar_in_a_list_is_one_change() -> None:
    assert diff(["a", "b"], ["a", "c"]).changes == (Change("changed", (1,), "b", "c"),)


def test_a_removal_inside_an_element_that_shifted_has_its_path_in_old() -> None:
    old = [1, {"a": 1, "b": 2}, 3, {"c": 4}, 5]
    new = [0, 1, {"a": 1}, 3, {"c": 5}, 6]

    assert diff(old, new).changes == (
        Change("added", (0,), None, 0),
        Change("removed", (1, "b"), 2, None),
        Change("changed", (4, "c"), 4, 5),
        Change("changed", (5,), 5, 6),
    )


def test_values_without_a_hash_are_compared_too() -> None:
    old = [bytearray(b"a"), 1, bytearray(b"b")]
    new = [bytearray(b"c"), 1, bytearray(b"b"), 2]

    assert diff(old, new).changes == (
        Change("changed", (0,), bytearray(b"a"), bytearray(b"c")),
        Change("added", (3,), None, 2),
    )


@pytest.mark.parametrize("kind", [dict, list, tuple])
@pytest.mark.parametrize("levels", [250, 1_000])
def test_a_deep_state_is_compared_to_its_bottom(levels: int, kind: type) -> None:
    (change,) = diff(nested(levels, 1, kind), nested(levels, 2, kind)).changes

    assert (change.old, change.new, len(change.path)) == (1, 2, levels)


def test_elements_too_deep_to_be_recognised_are_compared_in_their_place() -> None:
    old = [nested(1_000, 1, dict), "a", "b", 5]
    new = [nested(1_000, 2, dict), "b", 5]

    difference = diff(old, new)

    assert [change.op for change in difference.changes] == ["changed", "removed"]


def test_a_deep_value_is_printed_and_cut() -> None:
    assert str(diff({}, {"a": nested(1_000, 1, list)})).startswith("+ a  [[[[")


def test_a_patch_escapes_tildes_and_slashes() -> None:
    old = {"a/b": {"~": 1, "~1": 2}}
    new = {"a/b": {"~": 3}, "": 4}

    assert diff(old, new).patch() == [
        {"op": "replace", "path": "/a~1b/~0", "value": 3},
        {"op": "remove", "path": "/a~1b/~01"},
        {"op": "add", "path": "/", "value": 4},
    ]


def test_a_patch_of_a_list_counts_what_it_has_done_before() -> None:
    assert diff([1, 2, 3, 4], [0, 1, 4, 5]).patch() == [
        {"op": "add", "path": "/0", "value": 0},
        {"op": "remove", "path": "/2"},
        {"op": "remove", "path": "/2"},
        {"op": "add", "path": "/3", "value": 5},
    ]


def test_a_patch_carries_the_values_themselves() -> None:
    value = {"when": NOON}

    (operation,) = diff({}, {"a": value}).patch()

    assert operation["value"] is value


def test_a_patch_replaces_the_dict_whose_other_keys_lead_to_a_change() -> None:
    old = {"a": {1: {"x": 1, "y": 1}, "b": 1}, "c": 1}
    new = {"a": {1: {"x": 2, "y": 2}, "b": 2}, "c": 2}

    difference = diff(old, new)

    assert [change.path for change in difference.changes] == [
        ("a", 1, "x"),
        ("a", 1, "y"),
        ("a", "b"),
        ("c",),
    ]
    assert difference.patch() == [
        {"op": "replace", "path": "/a", "value": new["a"]},
        {"op": "replace", "path": "/c", "value": 2},
    ]


def test_a_patch_goes_below_text_keys_beside_other_keys_that_did_not_change() -> None:
    assert diff({1: "x", "a": {"b": 1}}, {1: "x", "a": {"b": 2}}).patch() == [
        {"op": "replace", "path": "/a/b", "value": 2}
    ]


def test_a_patch_replaces_a_tuple_as_a_whole() -> None:
    difference = diff({"at": (1, {"x": 2})}, {"at": (1, {"x": 3})})

    assert difference.changes == (Change("changed", ("at", 1, "x"), 2, 3),)
    assert difference.patch() == [
        {"op": "replace", "path": "/at", "value": (1, {"x": 3})}
    ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), "(root)"),
        (("messages", 4, "content"), "messages[4].content"),
        ((0, "a"), "[0].a"),
        (("a b", "c"), '["a b"].c'),
        (("a", "user-id"), 'a["user-id"]'),
        (("a", ""), 'a[""]'),
        (("a", 'say "hi"\n'), r'a["say \"hi\"\n"]'),
        (("名前",), "名前"),
        (("a", "\x1b[31m\u202e"), r'a["\u001b[31m\u202e"]'),
        (("a", None, 1.5, (1, "x")), 'a[null][1.5][(1, "x")]'),
    ],
)
def test_a_path_is_written_as_people_write_it(path: State, text: str) -> None:
    assert render_path(path) == text


def test_no_difference_says_so() -> None:
    assert str(diff({"a": 1}, {"a": 1})) == "no difference"
    assert str(Diff(())) == "no difference"


def test_a_chat_with_an_answer_and_a_smaller_budget_prints_readably() -> None:
    old = {"messages": [message(1)], "plan": {"cursor": 1, "goal": "x"}, "budget": 5}
    new = {
        "messages": [message(1), {"role": "assistant", "content": "Hello."}],
        "plan": {"goal": "x"},
        "budget": 4,
    }

    assert str(diff(old, new)) == (
        '+ messages[1]  {"role": "assistant", "content": "Hello."}\n'
        "- plan.cursor  1\n"
        "~ budget  5 -> 4\n"
        "1 added, 1 removed, 1 changed"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1.0, "1.0"),
        (math.nan, "nan"),
        ([], "[]"),
        ({}, "{}"),
        ((1, [2]), "(1, [2])"),
        (set(), "set()"),
        (frozenset({"b", "a"}), 'frozenset("a", "b")'),
        (b"\x00a", r"b'\x00a'"),
        (decimal.Decimal("1.50"), "Decimal('1.50')"),
        ({"a": [True, None], 1: "x"}, '{"a": [true, null], 1: "x"}'),
        ('tab\there \\ "there"', r'"tab\there \\ \"there\""'),
        ("\x1b[31mred\x7f\x9b", r'"\u001b[31mred\x7f\x9b"'),
        ("left\u202eright\ud800", r'"left\u202eright\ud800"'),
        ("全角\u3000空白", '"全角\u3000空白"'),
        ("👩‍💻 🇫🇷 e\u0301", '"👩‍💻 🇫🇷 e\u0301"'),
        ("x" * 58, '"' + "x" * 58 + '"'),
        ("x" * 59, '"' + "x" * 59 + "…"),
        ("漢" * 1_000, '"' + "漢" * 59 + "…"),
        ("x" * 58 + "👨‍👩‍👧" + "x", '"' + "x" * 58 + "…"),
        ("x" * 58 + "👍🏽" + "x", '"' + "x" * 58 + "…"),
        ("x" * 58 + "🇫🇷" + "x", '"' + "x" * 58 + "…"),
        ("x" * 58 + "e\u0301" + "x", '"' + "x" * 58 + "…"),
        ("x" * 58 + "\nx", '"' + "x" * 58 + "…"),
        ("x" * 55 + "\x1b" + "x", '"' + "x" * 55 + "…"),
        (
            [["word"] * 3] * 9,
            '[["word", "word", "word"], ["word", "word", "word"], ["word"…',
        ),
    ],
)
def test_a_value_prints_as_json_where_it_can_and_is_cut_safely(
    value: State, text: str
) -> None:
    line, _ = str(diff({}, {"v": value})).split("\n")

    assert line == f"+ v  {text}"


def test_long_texts_print_from_shortly_before_the_place_they_part() -> None:
    shared = "Once upon a time there was a long text that " * 5

    line, _ = str(diff({"t": shared + "ended."}, {"t": shared + "went on."})).split(
        "\n"
    )

    assert line == (
        '~ t  …"as a long text that ended." -> …"as a long text that went on."'
    )


def test_texts_that_fit_print_whole_however_much_they_share() -> None:
    line, _ = str(
        diff("the same long beginning, a", "the same long beginning, b")
    ).split("\n")

    assert line == (
        '~ (root)  "the same long beginning, a" -> "the same long beginning, b"'
    )


def test_integers_too_long_for_decimals_print_in_hexadecimal() -> None:
    line, _ = str(diff(0, 2**20_000)).split("\n")

    assert line == "~ (root)  0 -> 0x1" + "0" * 57 + "…"
