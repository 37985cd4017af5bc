"""The values of a state: their types, and how one follows another."""

from __future__ import annotations

import math
from itertools import permutations

from holdfast.agents import Agent
from holdfast.errors import Unstorable
from holdfast.messages import Message
from holdfast.operations.values import codec
from holdfast.testing._cases import LONG, Cases
from holdfast.testing._raises import raises
from holdfast.testing._shapes import SHAPES

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


def alike(one: object, other: object) -> bool:
    """Whether two values are equal including the types of all parts, and NaN is NaN."""
    return repr(one) == repr(other)


def size_of(state: object) -> int:
    """The bytes of a state as JSON; of a mapping with text keys, of its values."""
    if type(state) is dict and all(type(key) is str for key in state):
        return sum(len(codec.encode(value)) for value in state.values())
    return len(codec.encode(state))


class SizeTests(Cases):
    """``Checkpoint.size``, however a state is divided, packed and put together."""

    def test_the_size_of_a_state_of_any_shape(self) -> None:
        chat = self.thread()
        for state in (*SHAPES, *VALUES, {"value": VALUES, "\ud7ff €": VALUES}):
            assert chat.save(state).size == size_of(state)
            assert chat.save({"a": 1, "b": state}).size == 1 + len(codec.encode(state))

    def test_the_size_grows_with_what_is_appended(self) -> None:
        chat = self.thread()
        for n in range(30):
            saved = chat.append(messages=[{"n": n}, LONG][: n % 3], notes=["€"] * n)
            assert saved.size == size_of(chat.load())
        chat.save({**chat.load(), "notes": ["€"], "more": LONG})

        for checkpoint in chat.history(None):
            assert checkpoint.size == size_of(chat.load(checkpoint))

    def test_the_size_of_a_record_is_that_of_its_state(self) -> None:
        store = self.store
        store.documents.save("d", LONG, metadata={"k": LONG})
        store.agents.save(Agent(id="a", state={"s": LONG}))
        store.conversations.create("c", title="t", messages=[Message.user(LONG)])
        for _ in range(3):
            store.conversations.add("c", Message.assistant("short"))

        for thread in store.threads():
            assert thread.head is not None
            assert thread.head.size == size_of(store.load(thread.head))
        [listed] = store.documents.list()
        assert listed.size == store.documents.thread("d").get().size


class ValueTests(Cases):
    """What the codec and the manifest decide about a state."""

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
