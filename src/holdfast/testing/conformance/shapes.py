"""States of every shape, and how one becomes another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from holdfast.testing.conformance.cases import LONG, Cases

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


class ShapeTests(Cases):
    """A state is loaded as it was saved, with the same types."""

    def test_the_same_shapes_come_back_after_reopening(self) -> None:
        chat = self.thread()
        saved = [chat.save(shape) for shape in SHAPES]

        chat = self.reopen().thread("chat")

        assert [chat.load(c) for c in saved] == SHAPES

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

    def test_a_value_of_a_megabyte_comes_back(self) -> None:
        chat = self.thread()
        text = "".join(f"{n:06d}" for n in range(200_000))
        chat.save({"text": text})
        chat.save({"text": text[:600_000] + "!" + text[600_000:]})

        assert chat.load("@~1") == {"text": text}
        assert chat.load() == {"text": text[:600_000] + "!" + text[600_000:]}


class ListCases(Cases):
    """Saves versions of a list."""

    def check(self, *versions: Sequence[object]) -> None:
        """Save the versions one after another, and find each of them as it was."""
        chat = self.thread()
        saved = [chat.save({"list": version}) for version in versions]

        for checkpoint, version in zip(saved, versions, strict=True):
            assert chat.load(checkpoint) == {"list": version}
        assert chat.load() == {"list": versions[-1]}


class ListTests(ListCases):
    """Lists whose segments stand in several ranges, in any order."""

    def test_a_list_edited_anywhere_comes_back(self) -> None:
        old = [f"{n} {LONG[:n]}" for n in range(300)]
        for at in (0, 1, 7, 8, 150, 298, 299):
            self.check(old, [*old[:at], "edited", *old[at + 1 :]])
            self.check(old, [*old[:at], "inserted", *old[at:]])
            self.check(old, [*old[:at], *old[at + 1 :]])

    def test_a_list_turned_round_comes_back(self) -> None:
        old = [f"{n} {LONG}" for n in range(60)]

        self.check(old, old[::-1], [*old[30:], *old[:30]], old + old, old)

    def test_a_sliding_window_comes_back(self) -> None:
        elements = [f"{n} {LONG}" for n in range(120)]

        self.check(*(elements[n : n + 40] for n in range(80)))

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
