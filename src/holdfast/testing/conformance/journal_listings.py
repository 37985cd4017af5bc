"""The listings of the journal that name several checkpoints, as the port has them."""

from __future__ import annotations

from holdfast._port import CheckpointEntries
from holdfast._values.records import ThreadRecord
from holdfast.testing.conformance.journal_writes import PortCases


class JournalListingTests(PortCases):
    """The journals of many checkpoints in one request."""

    def test_the_journals_of_several_checkpoints_are_one_listing(self) -> None:
        first, second, third = self.filled(3)
        chat, fork = self.thread(), self.thread().fork("fork")
        chat.record("b", "newer", checkpoint=third)
        chat.record("b", "older", checkpoint=first)
        chat.record("a", "newest", checkpoint=third)
        chat.record("a", "of another checkpoint", checkpoint=second)
        chat.record("a", "of the thread itself")
        fork.record("a", "of a fork", checkpoint=first)
        record = self.record()
        asked = third.id, first.id, "never saved"

        found = self.listed(CheckpointEntries(thread=record, checkpoints=asked))

        assert found == [
            ("chat", "b", "newer"),
            ("chat", "b", "older"),
            ("chat", "a", "newest"),
        ]
        assert self.listed(CheckpointEntries(thread=record, checkpoints=())) == []

    def test_a_deleted_thread_has_no_journals_of_checkpoints(self) -> None:
        [saved] = self.filled(1)
        self.thread().fork("fork")
        self.thread().record("a", 1, checkpoint=saved)
        query = CheckpointEntries(thread=self.record(), checkpoints=(saved.id,))

        self.thread().delete()

        assert self.listed(query) == []

    def record(self) -> ThreadRecord:
        """The thread as it is now."""
        [found] = [item for item in self.store.threads() if item.id == "chat"]
        return found
