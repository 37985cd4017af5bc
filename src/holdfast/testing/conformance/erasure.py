# ruff: noqa: PLR2004 - a test states its numbers where it uses them
"""Erasing: what is gone for good, and what stays."""

from __future__ import annotations

from datetime import timedelta

from holdfast.errors import Conflict, NotFound
from holdfast.retention import Retention
from holdfast.testing.conformance.cases import LONG, Cases
from holdfast.testing.conformance.raises import raises

DAY = 24 * 3600 * 1_000_000


class ErasureTests(Cases):
    """Nothing is left of what is erased, and it does not come back by accident."""

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
