# ruff: noqa: PLR2004 - a test states its numbers where it uses them
"""Saving: parents, steps, order, options, and appending."""

from __future__ import annotations

import json
from datetime import timedelta

from holdfast.errors import NotFound, Unstorable
from holdfast.testing._cases import LONG, Cases, steps, untyped
from holdfast.testing._raises import raises


class SaveTests(Cases):
    """What a save keeps of a state, and in which order."""

    def test_what_was_saved_is_loaded(self) -> None:
        chat = self.thread()
        state = {"messages": [{"role": "user", "content": "hi"}], "budget": 5}

        chat.save(state)

        assert chat.load() == state

    def test_what_was_saved_is_there_after_reopening(self) -> None:
        self.thread().save({"short": 1, "long": LONG, "list": [LONG, LONG]})

        chat = self.reopen().thread("chat")

        assert chat.load() == {"short": 1, "long": LONG, "list": [LONG, LONG]}

    def test_a_thread_comes_into_being_with_its_first_save(self) -> None:
        chat = self.thread()
        assert (chat.head, chat.step, chat.about) == (None, 0, None)
        assert list(self.store.threads()) == []

        saved = chat.save({"n": 1})

        assert (chat.head, chat.step) == (saved, 1)
        assert [thread.id for thread in self.store.threads()] == ["chat"]

    def test_every_save_has_the_head_before_it_as_parent(self) -> None:
        first, second, third = self.filled(3)

        assert (first.parent, second.parent, third.parent) == (
            None,
            first.id,
            second.id,
        )

    def test_steps_count_from_one(self) -> None:
        assert steps(self.filled(3)) == [1, 2, 3]

    def test_steps_go_on_after_reopening(self) -> None:
        self.filled(3)

        chat = self.reopen().thread("chat")

        assert chat.step == 3
        assert chat.save({"n": 4}).step == 4

    def test_what_save_returns_is_what_is_stored(self) -> None:
        chat = self.thread()
        saved = chat.save({"long": LONG}, label="x", tags=["t"], metadata={"k": [1]})

        assert chat.get(saved.id) == saved
        assert chat.head == saved

    def test_sequence_numbers_grow_over_all_threads(self) -> None:
        names = ["a", "b", "a", "c", "b"]

        numbers = [self.thread(name).save({}).seq for name in names]

        assert numbers == sorted(set(numbers))

    def test_a_clock_that_stands_still_does_not_change_the_order(self) -> None:
        self.filled(10)

        chat = self.thread()

        assert chat.load() == {"n": 10}
        assert steps(chat.history()) == list(range(10, 0, -1))

    def test_a_clock_that_runs_backwards_does_not_change_the_order(self) -> None:
        chat = self.thread()
        for n in range(1, 6):
            chat.save({"n": n})
            self.clock.advance(timedelta(hours=-1))

        assert chat.load() == {"n": 5}
        assert steps(chat.history()) == [5, 4, 3, 2, 1]

    def test_the_time_of_a_save_is_the_clocks(self) -> None:
        self.clock.now = 1_234_567_890_123_456

        saved = self.thread().save({})

        assert saved.saved_at == 1_234_567_890_123_456
        assert saved.time.isoformat() == "2009-02-13T23:31:30.123456+00:00"

    def test_the_same_state_again_is_a_checkpoint_without_segments(self) -> None:
        chat = self.thread()
        chat.save({"text": LONG, "list": [LONG]})
        before = self.store.stats()

        chat.save({"text": LONG, "list": [LONG]})

        after = self.store.stats()
        assert after.checkpoints == before.checkpoints + 1
        assert after.segments == before.segments

    def test_if_changed_gives_back_the_head_of_an_unchanged_thread(self) -> None:
        chat = self.thread()
        saved = chat.save({"text": LONG, "n": 1, "list": [LONG]})

        again = chat.save({"text": LONG, "n": 1, "list": [LONG]}, if_changed=True)

        assert again == saved
        assert self.store.stats().checkpoints == 1

    def test_if_changed_records_its_journal_either_way(self) -> None:
        chat = self.thread()
        head = chat.save({"n": 1}, journal={"a": 1}, if_changed=True)
        chat.save({"n": 1}, journal={"b": 2}, if_changed=True)

        assert chat.journal(checkpoint=head) == {"a": 1, "b": 2}
        assert chat.step == 1

    def test_if_changed_saves_what_is_new(self) -> None:
        chat = self.thread()
        chat.save({"n": 1}, if_changed=True)
        chat.save({"n": True}, if_changed=True)
        chat.save({"n": 1.0}, if_changed=True)
        chat.save([{"n": 1.0}], if_changed=True)

        assert chat.step == 4

    def test_if_changed_gives_back_the_head_as_it_is_now(self) -> None:
        chat = self.thread()
        chat.save({"n": 1})
        chat.label("x")
        chat.tag("t")

        same = chat.save({"n": 1}, if_changed=True)

        assert (same.label, same.tags) == ("x", ("t",))
        assert same == chat.head

    def test_if_changed_compares_with_the_head_of_others(self) -> None:
        chat, same = self.thread(), self.rival().thread("chat")
        chat.save({"n": 1})
        same.save({"n": 2})

        assert chat.save({"n": 1}, if_changed=True).step == 3
        assert same.save({"n": 1}, if_changed=True).step == 3

    def test_every_option_of_a_save_is_kept(self) -> None:
        chat = self.thread()
        chat.save(
            {"n": 1},
            label="before refund",
            tags=["risky", "paid"],
            metadata={"cost": 1.5, "who": ["a", None]},
            kind="recovery",
            id="mine",
        )

        saved = chat.get("mine")

        assert (saved.label, saved.tags) == ("before refund", ("risky", "paid"))
        assert saved.metadata == {"cost": 1.5, "who": ["a", None]}
        assert saved.kind == "recovery"
        assert chat.find(label="before refund") == chat.find(tag="paid") == saved

    def test_what_was_not_given_is_empty(self) -> None:
        saved = self.thread().save({})

        assert (saved.label, saved.tags, saved.metadata) == (None, (), {})
        assert saved.kind == "save"

    def test_metadata_comes_back_with_its_types(self) -> None:
        metadata: dict[str, object] = {"t": (1, 2), "b": b"\0", "n": None, "": {}}

        saved = self.thread().save({}, metadata=metadata)

        assert saved.metadata == metadata
        assert self.thread().get().metadata == metadata

    def test_a_tag_given_twice_is_kept_once(self) -> None:
        assert self.thread().save({}, tags=["b", "a", "b"]).tags == ("b", "a")

    def test_a_text_is_not_a_list_of_tags(self) -> None:
        with raises(Unstorable):
            self.thread().save({}, tags="risky")

    def test_size_is_that_of_the_values_as_json(self) -> None:
        chat = self.thread()
        chat.save({"list": ["a", LONG]})
        chat.append(list=["b", LONG])
        chat.append(list=["c"])

        values = chat.load().values()

        text = "".join(json.dumps(v, separators=(",", ":")) for v in values)
        assert chat.get().size == len(text)

    def test_no_two_checkpoints_have_the_same_digest(self) -> None:
        chat = self.thread()
        saved = [chat.save({"n": n % 2}) for n in range(4)]

        digests = {checkpoint.digest for checkpoint in saved}

        assert len(digests) == 4
        assert all(digest.startswith("sha256:") for digest in digests)

    def test_changing_an_object_after_saving_it_changes_nothing(self) -> None:
        chat = self.thread()
        state = {"messages": [{"text": LONG}]}
        chat.save(state)

        state["messages"].append({"text": "later"})
        chat.load()["messages"].clear()

        assert chat.load() == {"messages": [{"text": LONG}]}

    def test_what_cannot_be_stored_is_refused_with_its_path(self) -> None:
        chat = self.thread()
        chat.save({"n": 1})

        with raises(Unstorable) as refused:
            chat.save({"n": 2, "messages": [{}, {"callback": print}]})

        assert refused.error.path == "state.messages[1].callback"
        assert chat.load() == {"n": 1}
        assert chat.step == 1

    def test_a_refused_first_save_makes_no_thread(self) -> None:
        with raises(Unstorable):
            self.thread().save({"f": print})
        with raises(Unstorable):
            self.thread().save({}, metadata={"f": print})
        with raises(Unstorable):
            self.thread().save({}, journal={"f": print})

        assert self.thread().about is None


class AppendTests(Cases):
    """Adding to the lists of a state without its old elements."""

    def test_append_adds_to_the_end_of_lists(self) -> None:
        chat = self.thread()
        chat.save({"messages": ["a"], "calls": [1], "budget": 5})

        chat.append(messages=["b", "c"], calls=[2])

        assert chat.load() == {
            "messages": ["a", "b", "c"],
            "calls": [1, 2],
            "budget": 5,
        }

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

    def test_append_builds_on_the_head_that_others_moved(self) -> None:
        chat, same = self.thread(), self.rival().thread("chat")
        for n in range(5):
            chat.append(messages=[f"{n} a {LONG}"])
            same.append(messages=[f"{n} b {LONG}"])

        expected = [f"{n} {who} {LONG}" for n in range(5) for who in "ab"]
        assert chat.load() == same.load() == {"messages": expected}
        assert steps(chat.history()) == list(range(10, 0, -1))

    def test_append_after_rewinding_continues_the_older_list(self) -> None:
        chat = self.thread()
        for name in "abc":
            chat.append(messages=[name + LONG])
        chat.rewind("@~2")

        chat.append(messages=["x" + LONG])

        assert chat.load() == {"messages": ["a" + LONG, "x" + LONG]}
        assert chat.load("id-000003")["messages"][2] == "c" + LONG

    def test_append_needs_no_thread(self) -> None:
        with raises(NotFound):
            self.thread().load()

        assert self.thread().append(messages=["a"]).step == 1
