# ruff: noqa: PLR2004 - a test states its numbers where it uses them
"""States of every shape, and how one becomes another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import permutations
from uuid import UUID

from holdfast.errors import Unstorable
from holdfast.testing._cases import LONG, Cases
from holdfast.testing._raises import raises

BLOCK = 4096  # how many segment numbers are given to a writer at once

SHAPES: list[object] = [
    {},
    [],
    None,
    True,
    0,
    -1.5,
    "",
    "text",
    LONG,
    {"a": 1},
    {"": 1},
    {"": LONG, "a": {}},
    {"a": LONG, "b": [LONG, LONG]},
    [1, 2, 3],
    [LONG, [LONG], {"a": LONG}],
    {1: "keys", None: "that are", (1, 2): "not text"},
    (1, (2, LONG)),
    {LONG, "a set"},
]
VALUES: list[object] = [
    None,
    7,
    "text",
    LONG,
    LONG * 40,
    [],
    ["a"],
    [LONG],
    [f"{n} {LONG}" for n in range(40)],
    {"a": LONG},
    (LONG, LONG),
]


class ShapeTests(Cases):
    """A state is loaded as it was saved, with the same types."""

    def test_a_state_of_any_shape_comes_back(self) -> None:
        for n, shape in enumerate(SHAPES):
            self.thread(f"thread {n}").save(shape)

        for n, shape in enumerate(SHAPES):
            loaded = self.thread(f"thread {n}").load()
            assert loaded == shape
            assert type(loaded) is type(shape)

    def test_a_state_of_any_shape_follows_one_of_any_other(self) -> None:
        chat = self.thread()
        pairs = list(permutations(SHAPES, 2))
        for before, after in pairs:
            chat.save(before)
            chat.save(after)
            assert chat.load() == after

        saved = chat.history(limit=None, order="oldest")
        expected = [shape for pair in pairs for shape in pair]
        assert [chat.load(c) for c in saved[::17]] == expected[::17]

    def test_the_same_shapes_come_back_after_reopening(self) -> None:
        chat = self.thread()
        saved = [chat.save(shape) for shape in SHAPES]

        chat = self.reopen().thread("chat")

        assert [chat.load(c) for c in saved] == SHAPES

    def test_the_order_of_the_keys_is_kept(self) -> None:
        chat = self.thread()
        chat.save({"b": 1, "a": LONG, "c": {"z": 1, "y": 2}})
        chat.save({"c": {"y": 1, "z": 2}, "a": LONG, "b": 1})

        assert list(chat.load("@~1")) == ["b", "a", "c"]
        assert list(chat.load()) == ["c", "a", "b"]
        assert list(chat.load()["c"]) == ["y", "z"]

    def test_any_text_is_a_key(self) -> None:
        keys = ["", " ", "a.b", "a[0]", '"', "\\", "\n", "ключ", "🔑", "$hf.bytes", "@"]
        state = {key: LONG[:n] for n, key in enumerate([*keys, "k" * 2000])}

        self.thread().save(state)

        assert self.thread().load() == state

    def test_a_key_that_is_not_unicode_is_refused(self) -> None:
        with raises(Unstorable):
            self.thread().save({"\ud800": 1})

    def test_a_thousand_keys_come_back(self) -> None:
        state = {f"key {n}": n if n % 2 else LONG for n in range(1000)}
        chat = self.thread()
        chat.save(state)
        chat.save({**state, "key 500": "changed"})

        assert chat.load("@~1") == state
        assert chat.load() == {**state, "key 500": "changed"}

    def test_values_keep_their_types(self) -> None:
        values = {
            "bytes": b"\0\xff" * 300,
            "moment": datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=UTC),
            "day": date(1, 1, 1),
            "span": timedelta(days=-1, microseconds=1),
            "decimal": Decimal("1.10"),
            "uuid": UUID(int=5),
            "set": {1, "a"},
            "frozen": frozenset({(1, 2)}),
            "tuple": (1, (2,)),
            "keys": {1: "a", None: "b", (1,): "c"},
            "big": 10**400,
            "surrogate": "\ud800",
            "infinite": [math.inf, -math.inf],
            "tag": {"$hf.bytes": "not one of ours"},
        }
        chat = self.thread()
        chat.save(values)
        chat.save({name: [value] * 40 for name, value in values.items()})

        assert chat.load("@~1") == values
        assert chat.load() == {name: [value] * 40 for name, value in values.items()}
        assert str(chat.load("@~1")["decimal"]) == "1.10"

    def test_not_a_number_comes_back(self) -> None:
        self.thread().save({"score": math.nan, "scores": [math.nan] * 100})

        loaded = self.thread().load()

        assert math.isnan(loaded["score"])
        assert all(map(math.isnan, loaded["scores"]))

    def test_a_value_of_any_size_and_type_follows_any_other(self) -> None:
        chat = self.thread()
        for before, after in permutations(VALUES, 2):
            chat.save({"value": before, "beside": LONG})
            chat.save({"value": after, "beside": LONG})
            assert chat.load() == {"value": after, "beside": LONG}

    def test_a_value_that_goes_and_comes_back_is_whole(self) -> None:
        chat = self.thread()
        for _ in range(3):
            chat.save({"a": [LONG] * 20, "b": LONG})
            chat.save({"b": LONG})
            chat.save({"b": LONG + "!", "a": [LONG] * 21})

        assert chat.load() == {"b": LONG + "!", "a": [LONG] * 21}
        assert chat.load("@~2") == {"a": [LONG] * 20, "b": LONG}

    def test_a_value_of_a_megabyte_comes_back(self) -> None:
        chat = self.thread()
        text = "".join(f"{n:06d}" for n in range(200_000))
        chat.save({"text": text})
        chat.save({"text": text[:600_000] + "!" + text[600_000:]})

        assert chat.load("@~1") == {"text": text}
        assert chat.load() == {"text": text[:600_000] + "!" + text[600_000:]}


class ListTests(Cases):
    """Lists that are edited: every version comes back, and shares what it can."""

    def check(self, *versions: Sequence[object]) -> None:
        """Save the versions one after another, and find each of them as it was."""
        chat = self.thread()
        saved = [chat.save({"list": version}) for version in versions]

        for checkpoint, version in zip(saved, versions, strict=True):
            assert chat.load(checkpoint) == {"list": version}
        assert chat.load() == {"list": versions[-1]}

    def test_a_list_edited_anywhere_comes_back(self) -> None:
        old = [f"{n} {LONG[:n]}" for n in range(300)]
        for at in (0, 1, 7, 8, 150, 298, 299):
            self.check(old, [*old[:at], "edited", *old[at + 1 :]])
            self.check(old, [*old[:at], "inserted", *old[at:]])
            self.check(old, [*old[:at], *old[at + 1 :]])

    def test_a_list_cut_at_either_end_comes_back(self) -> None:
        old = [f"{n} {LONG}" for n in range(100)]

        self.check(old, old[:1], old, old[-1:], old, old[40:60], old, old[:-1], old[1:])

    def test_a_list_turned_round_comes_back(self) -> None:
        old = [f"{n} {LONG}" for n in range(60)]

        self.check(old, old[::-1], [*old[30:], *old[:30]], old + old, old)

    def test_a_list_of_equal_elements_comes_back(self) -> None:
        self.check([LONG] * 50, [LONG] * 49, [LONG] * 120, ["x", *[LONG] * 50])
        self.check([1] * 500, [1] * 499, [*[1] * 250, 2, *[1] * 250], [11] * 400)

    def test_an_element_that_moves_into_another_comes_back(self) -> None:
        self.check([LONG], [["before", LONG, "after"], 1])
        self.check([{"m": LONG}, 1], [{"all": [0, {"m": LONG}, 2]}, 3], [{"m": LONG}])

    def test_text_that_looks_like_elements_comes_back(self) -> None:
        numbers = list(range(1000, 1100))
        joined = ",".join(map(str, numbers))

        self.check([*numbers], [f"log ,{joined}, end", 1], [*numbers, f",{joined},"])
        self.check(['","', "[", LONG], ['"', ",", "],[", LONG], [f'","{LONG}","'])

    def test_a_sliding_window_comes_back(self) -> None:
        elements = [f"{n} {LONG}" for n in range(120)]

        self.check(*(elements[n : n + 40] for n in range(80)))

    def test_a_sliding_window_keeps_its_segments(self) -> None:
        chat = self.thread()
        elements = [f"{n} {LONG}" for n in range(200)]
        for n in range(100):
            chat.save({"list": elements[n : n + 100]})

        raw = sum(map(len, elements))
        assert self.store.stats().stored_bytes <= 3 * raw

    def test_a_first_element_that_changes_leaves_the_rest_alone(self) -> None:
        chat = self.thread()
        messages: list[str] = []
        for n in range(100):
            messages.append(f"{n} {LONG}")
            chat.save({"list": [f"system {n}", *messages]})

        raw = sum(map(len, messages))
        assert self.store.stats().stored_bytes <= 3 * raw
        assert chat.load("@~50") == {"list": ["system 49", *messages[:50]]}

    def test_an_edit_every_tenth_time_leaves_the_rest_alone(self) -> None:
        chat = self.thread()
        messages: list[str] = []
        for n in range(100):
            messages.append(f"{n} {LONG}")
            if n % 10 == 9:
                messages[n // 2] += " edited"
            chat.save({"list": messages})

        raw = sum(map(len, messages))
        assert self.store.stats().stored_bytes <= 3 * raw
        assert chat.load() == {"list": messages}

    def test_a_long_list_of_small_elements_comes_back(self) -> None:
        old: list[object] = list(range(20_000))

        self.check(old, [*old, "end"], ["front", *old], [*old[:9], *old[11:]])

    def test_a_list_of_long_elements_comes_back(self) -> None:
        old: list[object] = [f"{n}" * 20_000 for n in range(5)]

        self.check(old, [*old, "x" * 30_000], [old[0], "y", *old[2:]])

    def test_many_lists_grow_at_once(self) -> None:
        chat = self.thread()
        for n in range(30):
            chat.save(
                {f"list {i}": [f"{i} {m} {LONG}" for m in range(n)] for i in "ab"}
            )
            chat.extend({f"list {i}": [f"{i} {n} {LONG}"] for i in "ab"})

        assert chat.load() == {
            f"list {i}": [f"{i} {m} {LONG}" for m in range(30)] for i in "ab"
        }
        assert chat.load("@~39")["list a"] == [f"a {m} {LONG}" for m in range(10)]

    def test_what_is_written_grows_with_what_is_new(self) -> None:
        chat = self.thread()
        for n in range(200):
            chat.save({"list": [f"{m} {LONG}" for m in range(n)]})

        facts = self.store.stats()
        raw = 200 * len(LONG)
        assert facts.stored_bytes <= 1.5 * raw
        assert facts.logical_bytes >= 50 * raw

    def test_a_value_that_always_changes_does_not_use_up_segment_numbers(self) -> None:
        chat = self.thread()
        for n in range(100):
            chat.save({"summary": chr(97 + n % 26) * 600})

        [run] = chat.get().runs
        assert run.last < 10 * BLOCK
