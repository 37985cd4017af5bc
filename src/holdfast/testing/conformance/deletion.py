# ruff: noqa: PLR2004 - a test states its numbers where it uses them
"""Deleting threads and single checkpoints."""

from __future__ import annotations

from holdfast.errors import NotFound
from holdfast.testing.conformance.cases import LONG, Cases, steps
from holdfast.testing.conformance.raises import raises


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
