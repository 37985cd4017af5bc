"""Lists that are edited: what the rope decides."""

from __future__ import annotations

from holdfast.errors import NotFound, Unstorable
from holdfast.testing import raises
from holdfast.testing.conformance.cases import LONG, Cases, untyped
from holdfast.testing.conformance.shapes import ListCases

BLOCK = 4096  # how many segment numbers are given to a writer at once


class EditedListTests(ListCases):
    """Every version of a list comes back, and shares what it can."""

    def test_a_list_cut_at_either_end_comes_back(self) -> None:
        old = [f"{n} {LONG}" for n in range(100)]

        self.check(old, old[:1], old, old[-1:], old, old[40:60], old, old[:-1], old[1:])

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


class AppendedListTests(Cases):
    """What `append` and `extend` take, and what they make of it."""

    def test_appending_is_the_same_as_saving_the_longer_list(self) -> None:
        whole, grown = self.thread("whole"), self.thread("grown")
        elements = [f"{n} {LONG[: n * 7]}" for n in range(60)]
        for count, element in enumerate(elements, 1):
            grown.append(list=[element])
            whole.save({"list": elements[:count]})

        assert grown.load() == whole.load() == {"list": elements}
        assert grown.get().size == whole.get().size
        assert grown.load("@~30") == whole.load("@~30")

    def test_append_begins_a_list_that_is_not_there(self) -> None:
        chat = self.thread()
        chat.append(messages=["a"])
        chat.append(calls=[])

        assert chat.load() == {"messages": ["a"], "calls": []}

    def test_appending_nothing_is_a_checkpoint_all_the_same(self) -> None:
        chat = self.thread()
        chat.append(messages=["a"])
        chat.append(messages=[])
        chat.append()

        assert chat.step == 3
        assert chat.load() == {"messages": ["a"]}

    def test_append_refuses_a_value_that_is_not_a_list(self) -> None:
        chat = self.thread()
        chat.save({"short": "text", "long": LONG, "tuple": (1,), "none": None})

        for name in ("short", "long", "tuple", "none"):
            with raises(Unstorable) as refused:
                chat.extend({name: ["a"]})
            assert refused.error.path == f"state.{name}"
        assert chat.step == 1

    def test_append_refuses_a_state_that_is_not_a_mapping(self) -> None:
        chat = self.thread()
        chat.save(["a"])

        with raises(Unstorable):
            chat.append(messages=["b"])

        assert chat.load() == ["a"]

    def test_append_takes_lists_of_elements_only(self) -> None:
        chat = self.thread()

        for wrong in untyped("text", 5, {"a": 1}, None):
            with raises(Unstorable):
                chat.extend({"messages": wrong})
        assert chat.head is None

    def test_append_refuses_an_element_with_its_path(self) -> None:
        chat = self.thread()

        with raises(Unstorable) as refused:
            chat.append(messages=["fine", {"callback": print}])

        assert refused.error.path == "state.messages[1].callback"

    def test_appended_elements_keep_their_types(self) -> None:
        chat = self.thread()
        elements: list[object] = [
            (1, 2),
            b"\0",
            float("inf"),
            {"$hf.bytes": "AA=="},
            [],
            {},
            None,
        ]
        for element in elements:
            chat.append(list=[element, LONG])

        assert chat.load()["list"][::2] == elements

    def test_extend_has_the_options_of_save(self) -> None:
        chat = self.thread()
        first = chat.extend({"m": ["a"]}, id="first")
        chat.extend(
            {"m": ["b"]},
            label="l",
            tags=["t"],
            metadata={"k": 1},
            kind="auto",
            expect=first,
            journal={"call": 1},
        )

        head = chat.get()
        assert (head.label, head.tags, head.kind) == ("l", ("t",), "auto")
        assert head.metadata == {"k": 1}
        assert chat.journal(checkpoint=head) == {"call": 1}

    def test_extend_takes_names_that_append_cannot(self) -> None:
        chat = self.thread()

        chat.extend({"": [1], "self": [2], "two words": [3]})

        assert chat.load() == {"": [1], "self": [2], "two words": [3]}

    def test_a_list_that_grew_by_appending_is_one_run_of_segments(self) -> None:
        chat = self.thread()
        for n in range(100):
            chat.append(messages=[f"{n} {LONG}"])

        assert len(chat.get().runs) <= 2

    def test_lists_that_grow_side_by_side_keep_whole_runs(self) -> None:
        chat = self.thread()
        for n in range(40):
            chat.extend({f"list {i}": [f"{n} {LONG}"] for i in range(10)})

        assert len(chat.get().runs) <= 20
        assert all(len(elements) == 40 for elements in chat.load().values())

    def test_append_needs_no_thread(self) -> None:
        with raises(NotFound):
            self.thread().load()

        assert self.thread().append(messages=["a"]).step == 1
