"""Several threads in one transaction, and saves that a key lets happen once."""

from __future__ import annotations

from holdfast.errors import Closed, Conflict, Unstorable
from holdfast.testing.conformance.cases import LONG, Cases, raises, untyped


class TransactionTests(Cases):
    """``store.transaction()``: all of it or nothing."""

    def test_a_transaction_saves_to_several_threads(self) -> None:
        self.thread("log").append(events=[LONG])

        with self.store.transaction() as tx:
            tx.thread("run", owner="ann").save({"n": 1}, label="begun")
            tx.thread("log").extend({"events": ["begun"]})
            tx.thread("seen").record_all({"call": b"\0"})
        run, log = self.thread("run"), self.thread("log")

        assert tx.saved == {"run": run.head, "log": log.head}
        assert (run.load(), log.load()) == ({"n": 1}, {"events": [LONG, "begun"]})
        assert self.thread("seen").journal() == {"call": b"\0"}
        about = run.about
        assert about is not None
        assert about.owner == "ann"

    def test_one_head_that_moved_refuses_the_whole_transaction(self) -> None:
        old, _ = self.filled(2, "run")

        with raises(Conflict, "head_moved") as refused, self.store.transaction() as tx:
            tx.thread("log").save({"n": 1})
            tx.thread("run").save({"n": 3}, expect=old)
            tx.thread("seen").record_all({"call": 1})

        assert refused.error.thread == "run"
        assert (self.thread("log").head, self.thread("run").step) == (None, 2)
        assert (self.thread("seen").journal(), tx.saved) == ({}, {})

    def test_a_transaction_may_only_check_a_head(self) -> None:
        first = self.filled(1, "run")[0]
        with self.store.transaction() as tx:
            tx.thread("run").check(first)
            tx.thread("log").save({"n": 1})
        second = self.thread("run").save({"n": 2})

        with raises(Conflict, "head_moved") as refused, self.store.transaction() as tx:
            tx.thread("run").check(first)
            tx.thread("log").save({"n": 2})

        assert refused.error.found == second == self.thread("run").head
        assert self.thread("log").load() == {"n": 1}

    def test_without_expect_a_transaction_follows_other_writers(self) -> None:
        rival = self.rival()
        for name in "ab":
            self.thread(name).append(list=[LONG])
        rival.thread("b").append(list=["theirs"])

        with self.store.transaction() as tx:
            tx.thread("a").extend({"list": ["ours"]})
            tx.thread("b").extend({"list": ["ours"]})

        assert self.thread("a").load() == {"list": [LONG, "ours"]}
        assert self.thread("b").load() == {"list": [LONG, "theirs", "ours"]}
        assert rival.thread("a").load() == {"list": [LONG, "ours"]}
        assert self.store.verify().ok

    def test_two_forks_are_saved_together(self) -> None:
        self.thread().append(list=[LONG])
        self.thread().fork("fork")

        with self.store.transaction() as tx:
            tx.thread("chat").extend({"list": [f"chat {LONG}"]})
            tx.thread("fork").extend({"list": [f"fork {LONG}"]})

        for name in ("chat", "fork"):
            assert self.thread(name).load() == {"list": [LONG, f"{name} {LONG}"]}

    def test_a_block_that_raises_changes_nothing(self) -> None:
        with raises(ZeroDivisionError), self.store.transaction() as tx:
            tx.thread("run").save({"n": 1})
            assert self.thread("run").head is None
            raise ZeroDivisionError

        assert self.thread("run").head is None
        with raises(Closed):
            tx.thread("run").save({"n": 2})

    def test_a_thread_is_changed_once_in_a_transaction(self) -> None:
        with raises(Unstorable), self.store.transaction() as tx:
            tx.thread("run").save({"n": 1})
            tx.thread("run").record_all({"call": 1})

        assert self.thread("run").head is None

    def test_a_transaction_with_ids_can_be_repeated(self) -> None:
        for _ in range(2):
            with self.store.transaction() as tx:
                tx.thread("a").save({"n": 1}, id="one")
                tx.thread("b").save({"n": 2}, id="two")

            assert [tx.saved[name].id for name in "ab"] == ["one", "two"]
        assert self.store.stats().checkpoints == 2

        with raises(Conflict, "id_taken"), self.store.transaction() as tx:
            tx.thread("c").save({})
            tx.thread("b").save({"n": 3}, id="two")
        assert self.thread("c").head is None

    def test_an_empty_transaction_changes_nothing(self) -> None:
        with self.store.transaction() as tx:
            pass

        assert tx.saved == {}


class OnceTests(Cases):
    """``once=``: a save under keys of the thread that must be new."""

    def test_a_key_that_was_seen_refuses_the_save(self) -> None:
        chat = self.thread()
        chat.append(list=[LONG])
        saved = chat.extend({"list": ["a"]}, once={"a": 1}, journal={"k": 2})

        with raises(Conflict, "entry_taken") as refused:
            chat.extend({"list": ["b", "a"]}, once={"b": 2, "a": 3})

        assert refused.error.thread == "chat"
        assert chat.head == saved
        assert chat.load() == {"list": [LONG, "a"]}
        assert (chat.journal(), chat.journal(checkpoint=saved)) == ({"a": 1}, {"k": 2})

    def test_whoever_recorded_the_key_was_first(self) -> None:
        chat, rival = self.thread(), self.rival().thread("chat")
        chat.save({"n": 1})
        rival.record("a", "by hand")

        with raises(Conflict, "entry_taken"):
            chat.save({"n": 2}, once={"a": 1})

        rival.save({"n": 3}, once={"b": 1})
        with raises(Conflict, "entry_taken"):
            chat.save({"n": 2}, once={"b": 1})
        assert chat.load() == {"n": 3}
        assert chat.save({"n": 4}, once={"c": 1}).step == 3

    def test_the_first_save_of_a_thread_can_have_a_key(self) -> None:
        chat = self.thread()
        chat.save({"n": 1}, once={"a": 1})
        chat.delete()

        chat.save({"n": 2}, expect=None, once={"a": 2})

        assert chat.journal() == {"a": 2}

    def test_a_save_with_an_id_and_a_key_can_be_repeated(self) -> None:
        chat = self.thread()
        saved = [chat.save({"n": 1}, id="one", once={"a": 1}) for _ in range(2)]

        assert saved[0] == saved[1]
        assert (chat.step, chat.journal()) == (1, {"a": 1})

    def test_a_taken_key_refuses_a_whole_transaction(self) -> None:
        self.thread().record("a", 1)

        with raises(Conflict, "entry_taken"), self.store.transaction() as tx:
            tx.thread("other").save({})
            tx.thread("chat").amend(values={"n": 1}, once={"a": 2})

        assert (self.thread("other").head, self.thread().head) == (None, None)
        assert self.thread().journal() == {"a": 1}

    def test_once_is_for_saves_that_are_made_in_any_case(self) -> None:
        chat = self.thread()
        for wrong in untyped({"": 1}, {1: 1}, {"a": print}):
            with raises(Unstorable):
                chat.save({}, once=wrong)
        with raises(Unstorable):
            chat.save({}, once={"a": 1}, if_changed=True)

        assert chat.head is None


class KeptRecordTests(Cases):
    """The journal of a thread as a store of small values by key."""

    def test_values_are_listed_by_key(self) -> None:
        kept = self.thread()
        kept.record_all({"b/2": 2, "a/1": b"\0", "b/10": 10, "b": 0, "Ж": "x"})

        assert list(kept.recorded_all().items()) == [
            ("a/1", b"\0"), ("b", 0), ("b/10", 10), ("b/2", 2), ("Ж", "x"),
        ]  # fmt: skip
        assert list(kept.recorded_all("b/")) == ["b/10", "b/2"]
        assert list(kept.recorded_all("b", limit=2)) == ["b", "b/10"]
        assert list(kept.recorded_all("b", after="b/10")) == ["b/2"]
        assert kept.recorded_all("c") == self.thread("nobody").recorded_all() == {}
        for wrong in untyped(0, -1, "x"):
            with raises(Unstorable):
                kept.recorded_all(limit=wrong)
        for wrong in untyped("\0", 5):
            with raises(Unstorable):
                kept.recorded_all(wrong)

    def test_what_is_forgotten_can_be_recorded_again(self) -> None:
        kept = self.thread()
        kept.record_all({"a": 1, "b": 2})
        kept.forget("a", "nothing")
        self.thread("nobody").forget("a")

        assert kept.recorded_all() == {"b": 2}
        assert kept.record("a", 3) == 3
        assert self.store.verify().ok


class ExpectedDeletionTests(Cases):
    """``delete(expect=)``: only a thread at the head that was seen."""

    def test_a_thread_that_moved_on_is_not_deleted(self) -> None:
        first, second = self.filled(2)
        chat = self.thread()

        with raises(Conflict, "head_moved") as refused:
            chat.delete(expect=first)

        assert refused.error.expected == first.id
        assert refused.error.found == second == chat.head
        with raises(Conflict, "head_moved"):
            chat.delete(expect=None)
        assert chat.delete(expect=second.id) == 1
        with raises(Conflict, "thread_missing"):
            chat.delete(expect=second)

    def test_a_thread_that_only_recorded_has_no_head(self) -> None:
        chat = self.thread()
        chat.record("a", 1)

        assert chat.delete(expect=None) == 1
        assert chat.journal() == {}

    def test_expect_goes_with_the_whole_thread(self) -> None:
        first, second = self.filled(2)

        with raises(Unstorable):
            self.thread().delete(first, expect=second)

        assert self.thread().step == 2
