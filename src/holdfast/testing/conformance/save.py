"""Saving: parents, steps, order, options, and appending."""

from __future__ import annotations

from datetime import timedelta

from holdfast.testing.conformance.cases import LONG, Cases, steps


class SaveTests(Cases):
    """Saves keep their state, options, parents and order."""

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
