"""Deleting threads and checkpoints, and erasing threads for good."""

from __future__ import annotations

from datetime import timedelta

from holdfast.errors import Conflict, NotFound
from holdfast.retention import Retention
from holdfast.testing.conformance.cases import LONG, Cases, raises, steps


class DeletionTests(Cases):
    """Deleting can be repeated and says how many were deleted."""

    def test_deleting_a_thread_twice_is_fine(self) -> None:
        self.filled(3)

        assert self.thread().delete() == 1
        assert self.thread().delete() == 0
        assert self.thread("nobody").delete() == 0

    def test_nothing_of_a_deleted_thread_is_left(self) -> None:
        chat = self.thread()
        saved = chat.save({"text": LONG}, label="x", tags=["t"], journal={"k": 1})
        chat.delete()

        assert (chat.head, chat.step, chat.about) == (None, 0, None)
        assert (len(chat.history(all=True)), len(chat.moves())) == (0, 0)
        assert list(self.store.threads()) == []
        for read in (chat.load, chat.get, chat.undo):
            with raises(NotFound):
                read()
        with raises(NotFound):
            self.store.load(saved)
        facts = self.store.stats()
        assert (facts.threads, facts.checkpoints, facts.segments) == (0, 0, 0)
        assert facts.journal_entries == 0

    def test_threads_are_deleted_by_name(self) -> None:
        for name in "abc":
            self.filled(1, name)

        assert self.store.delete("a", "c", "nobody", "a") == 2
        assert [thread.id for thread in self.store.threads()] == ["b"]

    def test_threads_are_deleted_by_owner_kind_and_prefix(self) -> None:
        for n, owner in enumerate(["me", "me", "you"]):
            self.store.thread(f"a{n}", owner=owner, kind="agent").save({})
            self.store.thread(f"b{n}", owner=owner).save({})

        assert self.store.delete(owner="me", kind="agent") == 2
        assert self.store.delete(prefix="a", owner="me") == 0
        assert self.store.delete(prefix="b") == 3
        assert self.store.delete(owner="you") == 1
        assert self.store.stats().threads == 0

    def test_other_threads_are_left_alone(self) -> None:
        self.filled(2, "a")
        other = self.thread("b")
        other.append(m=[LONG])
        self.thread("a").delete()

        assert other.load() == {"m": [LONG]}


class CheckpointDeletionTests(Cases):
    """One checkpoint of a thread is removed; its child gets its parent."""

    def test_a_checkpoint_in_the_middle_goes(self) -> None:
        chat = self.thread()
        saved = [chat.append(m=[f"{n} {LONG}"]) for n in range(4)]

        assert chat.delete(saved[1]) == 1

        assert steps(chat.history()) == [4, 3, 1]
        assert chat.get(saved[2].id).parent == saved[0].id
        assert chat.load() == {"m": [f"{n} {LONG}" for n in range(4)]}
        assert chat.load("@~2") == {"m": [f"0 {LONG}"]}
        with raises(NotFound):
            chat.load(saved[1])

    def test_the_first_checkpoint_goes(self) -> None:
        first, second, _ = self.filled(3)
        chat = self.thread()

        assert chat.delete(first) == 1

        assert chat.get(second.id).parent is None
        assert steps(chat.history()) == [3, 2]

    def test_the_head_goes_and_its_parent_takes_its_place(self) -> None:
        self.filled(3)
        chat = self.thread()

        assert chat.delete("@") == 1

        assert chat.load() == {"n": 2}
        assert chat.save({"n": "next"}).step == 3

    def test_deleting_a_checkpoint_twice_is_fine(self) -> None:
        first, _ = self.filled(2)
        chat = self.thread()

        assert chat.delete(first) == 1
        assert chat.delete(first) == 0
        assert chat.delete(first.id) == 0

    def test_only_what_no_other_checkpoint_shares_is_freed(self) -> None:
        chat = self.thread()
        first = chat.save({"a": LONG, "b": "one" + LONG})
        chat.save({"a": LONG, "b": "two" + LONG})
        before = self.store.stats().segments

        chat.delete(first)

        assert self.store.stats().segments == before - 1
        assert chat.load() == {"a": LONG, "b": "two" + LONG}


DAY = 24 * 3600 * 1_000_000


class ErasureTests(Cases):
    """An erased thread leaves no content, and does not come back by accident."""

    def test_nothing_of_an_erased_thread_is_left(self) -> None:
        chat = self.store.thread("chat", owner="me", metadata={"k": 1})
        chat.save({"text": LONG}, label="x", tags=["t"], journal={"k": 1})
        self.thread("other").save({"text": LONG})

        planned = self.store.erase(thread="chat", dry_run=True)
        receipt = self.store.erase(thread="chat")

        assert (receipt.threads, receipt.checkpoints, receipt.entries) == (1, 1, 1)
        assert (planned.bytes, planned.heads) == (receipt.bytes, receipt.heads)
        with raises(NotFound):
            chat.load()
        assert [thread.id for thread in self.store.threads()] == ["other"]
        assert "chat" not in {change.thread for change in self.store.changes()}
        assert self.store.stats().journal_entries == 0
        assert self.store.verify().problems == ()
        assert self.thread("other").load() == {"text": LONG}

    def test_late_writers_are_refused_for_good(self) -> None:
        chat = self.thread()
        chat.save({"n": 1})
        self.store.erase(thread="chat")
        self.clock.now += 100 * DAY
        self.store.prune(Retention(within=timedelta(0)))

        for late in (self.thread(), chat):
            with raises(Conflict, "thread_deleted"):
                late.save({"n": 2})
            with raises(Conflict, "thread_deleted"):
                late.record("k", 1)

        chat.save({"n": 3}, expect=None)
        assert chat.load() == {"n": 3}
        assert chat.save({"n": 4}).step == 2

    def test_a_thread_that_was_deleted_before_loses_its_name_too(self) -> None:
        for _ in range(2):
            self.thread().save({"n": 1}, expect=None)
            self.thread().delete()
        self.store.erase(thread="chat")

        assert "chat" not in {change.thread for change in self.store.changes()}
        with raises(Conflict, "thread_deleted"):
            self.thread().save({"n": 2})

    def test_history_that_a_fork_shares_is_erased_with_the_fork_only(self) -> None:
        self.filled(2)
        fork = self.thread().fork("fork")
        fork.save({"n": "fork"})

        with raises(Conflict, "in_use") as refused:
            self.store.erase(thread="chat")

        assert refused.error.thread == "fork"
        assert self.thread().load() == {"n": 2}
        assert self.store.erase(thread="fork").checkpoints == 1
        assert self.thread().load() == {"n": 2}
        self.thread().fork("again")
        assert self.store.erase(thread="chat", forks=True).threads == 2
        assert self.store.stats().checkpoints == 0
