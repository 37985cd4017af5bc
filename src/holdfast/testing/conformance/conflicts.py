"""Compare-and-swap, saves that are repeated, and writers that come too late."""

from __future__ import annotations

from datetime import timedelta

from holdfast.errors import Conflict, NotFound
from holdfast.retention import Retention
from holdfast.testing.conformance.cases import LONG, Cases, raises, steps


class ExpectationTests(Cases):
    """``expect=``: save only on the head that was seen."""

    def test_a_save_on_the_expected_head_is_made(self) -> None:
        chat = self.thread()
        first = chat.save({"n": 1}, expect=None)

        assert chat.save({"n": 2}, expect=first).parent == first.id
        assert chat.save({"n": 3}, expect="@").step == 3

    def test_a_save_on_another_head_is_a_conflict_that_carries_the_head(self) -> None:
        first, second = self.filled(2)
        chat = self.thread()

        with raises(Conflict, "head_moved") as refused:
            chat.save({"n": 3}, expect=first)

        assert refused.error.thread == "chat"
        assert refused.error.expected == first.id
        assert refused.error.found == second
        assert chat.head == second
        assert self.store.stats().checkpoints == 2

    def test_expecting_nothing_means_that_the_thread_must_be_new(self) -> None:
        chat = self.thread()
        first = chat.save({"n": 1}, expect=None)

        with raises(Conflict) as refused:
            chat.save({"n": 2}, expect=None)

        assert refused.error.found == first
        assert chat.load() == {"n": 1}

    def test_of_two_that_expect_the_same_head_one_wins(self) -> None:
        chat, same = self.thread(), self.rival().thread("chat")
        first = chat.save({"n": 1})

        won = same.save({"n": 2}, expect=first)
        with raises(Conflict) as refused:
            chat.save({"n": 3}, expect=first)

        assert refused.error.found == won
        assert chat.load() == {"n": 2}

    def test_without_expect_a_save_follows_the_head_of_other_writers(self) -> None:
        chat, same = self.thread(), self.rival().thread("chat")
        first = chat.save({"n": 1, "text": LONG})
        second = same.save({"n": 2, "text": LONG})

        third = chat.save({"n": 3, "text": LONG})

        assert (second.parent, third.parent) == (first.id, second.id)
        assert [c.id for c in chat.history()] == [third.id, second.id, first.id]
        assert chat.load(second) == {"n": 2, "text": LONG}

    def test_two_that_begin_the_same_thread_are_both_there(self) -> None:
        chat, same = self.thread(), self.rival().thread("chat")
        assert (chat.head, same.head) == (None, None)
        chat.save({"n": 1})
        same.save({"n": 2})

        assert steps(chat.history()) == [2, 1]


class RepetitionTests(Cases):
    """``id=``: a save that is repeated is made once."""

    def test_the_same_save_again_gives_back_the_first(self) -> None:
        chat = self.thread()
        first = chat.save({"n": 1, "text": LONG}, id="a", metadata={"k": 1})

        again = chat.save({"n": 1, "text": LONG}, id="a", metadata={"k": 1})

        assert again == first
        assert self.store.stats().checkpoints == 1

    def test_a_repeated_save_gives_the_first_after_the_head_moved_on(self) -> None:
        chat = self.thread()
        chat.save({"n": 0})
        first = chat.save({"n": 1}, id="a", expect="@")
        head = chat.save({"n": 2})

        assert chat.save({"n": 1}, id="a") == first
        assert chat.save({"n": 1}, id="a", expect=first.parent) == first
        assert chat.head == head

    def test_a_repeated_save_gives_the_first_after_reopening(self) -> None:
        first = self.thread().save({"text": LONG}, id="a", expect=None)

        chat = self.reopen().thread("chat")

        assert chat.save({"text": LONG}, id="a", expect=None) == first
        assert chat.step == 1

    def test_other_content_under_the_same_id_is_a_conflict(self) -> None:
        chat = self.thread()
        chat.save({"n": 1}, id="a", metadata={"k": 1})

        for state in ({"n": 2}, {"n": 1.0}, {"n": 1, "m": 1}, [{"n": 1}], {}):
            with raises(Conflict, "id_taken"):
                chat.save(state, id="a", metadata={"k": 1})
        with raises(Conflict, "id_taken"):
            chat.save({"n": 1}, id="a", metadata={"k": 2})
        with raises(Conflict, "id_taken"):
            chat.save({"n": 1}, id="a", metadata={"k": 1}, kind="other")
        assert chat.load() == {"n": 1}
        assert chat.step == 1

    def test_the_id_of_one_thread_is_no_matter_to_another(self) -> None:
        one, other = self.thread("one"), self.thread("other")
        one.save({"n": 1}, id="a")
        other.save({"n": 2}, id="a")

        assert (one.load("a"), other.load("a")) == ({"n": 1}, {"n": 2})
        assert (one.get("a").thread, other.get("a").thread) == ("one", "other")

    def test_a_fork_cannot_take_an_id_of_its_source(self) -> None:
        chat = self.thread()
        chat.save({"n": 1}, id="a")
        fork = chat.fork("fork")

        with raises(Conflict, "id_taken"):
            fork.save({"n": 2}, id="a")

        assert chat.load("a") == fork.load("a") == {"n": 1}


class TombstoneTests(Cases):
    """A deleted thread stays deleted until a caller asks to start it again."""

    def test_a_late_writer_is_turned_away(self) -> None:
        chat = self.thread()
        chat.append(m=["a"])
        chat.delete()

        with raises(Conflict, "thread_deleted"):
            chat.save({"n": 2})
        with raises(Conflict, "thread_deleted"):
            chat.append(m=["b"])
        with raises(Conflict, "thread_deleted"):
            chat.record("key", 1)
        assert chat.head is None
        assert list(self.store.threads()) == []

    def test_a_writer_who_saw_the_thread_alive_is_turned_away(self) -> None:
        chat, same = self.thread(), self.rival().thread("chat")
        same.save({"n": 1})
        chat.load()
        same.delete()

        with raises(Conflict, "thread_deleted"):
            chat.save({"n": 2})
        assert chat.head is None

    def test_a_late_writer_is_turned_away_after_reopening(self) -> None:
        self.filled(1)
        self.thread().delete()

        chat = self.reopen().thread("chat")

        with raises(Conflict, "thread_deleted"):
            chat.save({"n": 2})

    def test_expecting_nothing_starts_a_deleted_thread_again(self) -> None:
        chat = self.thread()
        old = chat.save({"old": LONG}, label="mine", tags=["t"])
        chat.record("key", "old")
        chat.delete()

        new = chat.save({"new": LONG}, expect=None)

        assert (new.step, new.parent) == (1, None)
        assert chat.load() == {"new": LONG}
        assert [c.id for c in chat.history(all=True)] == [new.id]
        assert (chat.find(label="mine"), chat.journal()) == (None, {})
        with raises(NotFound):
            chat.load(old)

    def test_a_thread_started_again_with_the_same_id_has_its_own_state(self) -> None:
        chat, same = self.thread(), self.rival().thread("chat")
        chat.save({"text": "old" + LONG}, id="first")
        chat.load()
        same.delete()
        same.save({"text": "new" + LONG}, id="first", expect=None)

        assert chat.load() == {"text": "new" + LONG}

    def test_a_tombstone_is_forgotten_in_the_end(self) -> None:
        chat = self.thread()
        chat.save({"n": 1})
        chat.delete()
        self.thread("other").save({})
        self.clock.advance(timedelta(days=366))

        self.store.prune(Retention())

        assert chat.save({"n": 2}).step == 1
