"""Writes to the journal under a condition, and its listings, as the port has them."""

from __future__ import annotations

from holdfast._port import (
    NEW_THREAD,
    CheckpointEntries,
    Entries,
    FamilyEntries,
    Turn,
)
from holdfast._values.records import ThreadRecord
from holdfast.errors import Conflict
from holdfast.testing.conformance.cases import raises
from holdfast.testing.conformance.queries import PortCases, described


class ForgettingTests(PortCases):
    """Entries of a thread that are removed again."""

    def test_what_is_forgotten_is_gone_and_the_rest_stays(self) -> None:
        chat = self.thread()
        chat.record_all({"a": 1, "b": 2, "c": 3})

        self.write(forget=("a", "c", "never recorded"))

        assert chat.journal() == {"b": 2}
        assert self.store.stats().journal_entries == 1

    def test_what_is_forgotten_stays_forgotten_after_reopening(self) -> None:
        self.thread().record_all({"a": 1, "b": 2})
        self.write(forget=("a",))

        chat = self.reopen().thread("chat")

        assert chat.journal() == {"b": 2}
        assert self.store.verify().problems == ()

    def test_a_key_can_be_recorded_again_after_it_was_forgotten(self) -> None:
        chat = self.thread()
        chat.record_all({"a": 1, "b": 2})
        self.write(forget=("a",))

        assert chat.record("a", "again") == "again"
        assert list(chat.journal().items()) == [("b", 2), ("a", "again")]
        self.must_reopen()
        assert self.reopen().thread("chat").journal() == {"b": 2, "a": "again"}

    def test_a_replaced_value_is_forgotten_too(self) -> None:
        chat = self.thread()
        chat.record("a", 1)
        chat.record("a", 2, replace=True)

        self.write(forget=("a",))

        assert chat.journal() == {}
        self.must_reopen()
        assert self.reopen().thread("chat").journal() == {}

    def test_only_the_journal_of_the_thread_itself_is_forgotten(self) -> None:
        [saved] = self.filled(1)
        chat, fork = self.thread(), self.thread().fork("fork")
        chat.record("a", "of the thread")
        chat.record("a", "of the checkpoint", checkpoint=saved)
        fork.record("a", "of the fork")

        self.write(forget=("a",))

        assert chat.journal() == {}
        assert chat.journal(checkpoint=saved) == {"a": "of the checkpoint"}
        assert fork.journal() == {"a": "of the fork"}

    def test_other_entries_are_recorded_in_the_same_write(self) -> None:
        chat = self.thread()
        chat.record("a", 1)

        [entry] = self.write(values={"b": 2}, forget=("a",))

        assert (entry.key, entry.value) == ("b", 2)
        assert chat.journal() == {"b": 2}

    def test_a_move_of_the_head_forgets_and_records_with_it(self) -> None:
        first, second = self.filled(2)
        chat = self.thread()
        chat.record("a", 1)

        turn = Turn("rewind", first)
        self.write(values={"b": 2}, expect=second, turn=turn, forget=("a",))

        assert chat.head == first
        assert chat.journal() == {"b": 2}
        assert [move.kind for move in chat.moves()] == ["rewind", "save", "save"]
        assert chat.undo() == second

    def test_a_refused_write_forgets_nothing(self) -> None:
        first, _ = self.filled(2)
        chat = self.thread()
        chat.record("a", 1)

        with raises(Conflict, code="head_moved"):
            self.write(expect=first, forget=("a",))

        assert chat.journal() == {"a": 1}

    def test_a_thread_that_is_not_there_has_nothing_to_forget(self) -> None:
        with raises(Conflict, code="thread_missing"):
            self.write(forget=("a",))

        assert self.thread().about is None

    def test_the_number_of_what_was_forgotten_is_not_given_again(self) -> None:
        """With the same number, a reader of the feed would miss the next change."""
        self.filled(1)
        self.thread().record("a", 1)
        seen = self.store.changes().cursor
        assert seen is not None

        self.write(forget=("a",))
        self.thread("other").save({"n": 1})

        found = self.store.changes(seen)
        assert [(c.kind, c.thread) for c in found] == [
            ("forget", "chat"),
            ("save", "other"),
        ]
        changed = [thread.changed for thread in self.store.threads()]
        assert len(set(changed)) == len(changed) == 2

    def test_forgetting_moves_no_head_and_is_not_undone(self) -> None:
        first, second = self.filled(2)
        chat = self.thread()
        chat.record("a", 1)

        self.write(expect=second, forget=("a",))

        assert chat.head == second
        assert chat.undo() == first
        assert chat.journal() == {}


class ExpectingEntryTests(PortCases):
    """Entries that are recorded only while the head is the one that is expected."""

    def test_an_entry_is_recorded_on_the_head_that_is_expected(self) -> None:
        _, head = self.filled(2)

        [entry] = self.write(values={"a": 1}, expect=head)

        assert entry.value == 1
        assert self.thread().journal() == {"a": 1}
        assert self.thread().head == head

    def test_on_another_head_nothing_is_recorded(self) -> None:
        first, second = self.filled(2)

        with raises(Conflict, code="head_moved") as caught:
            self.write(values={"a": 1}, expect=first, start=NEW_THREAD)

        assert caught.error.found == second
        assert self.thread().journal() == {}

    def test_an_entry_already_recorded_is_no_way_round_the_head(self) -> None:
        first, _ = self.filled(2)
        self.thread().record("a", 1)

        with raises(Conflict, code="head_moved"):
            self.write(values={"a": 2}, expect=first)

        assert self.thread().journal() == {"a": 1}

    def test_no_head_is_expected_of_a_new_thread(self) -> None:
        chat = self.thread()

        self.write(values={"a": 1}, expect=None, start=NEW_THREAD)
        [entry] = self.write(values={"a": 2, "b": 3}, expect=None)[1:]

        assert entry.value == 3
        assert chat.journal() == {"a": 1, "b": 3}
        assert chat.head is None

    def test_no_head_is_expected_and_there_is_one(self) -> None:
        self.filled(1)

        with raises(Conflict, code="head_moved"):
            self.write(values={"a": 1}, expect=None, start=NEW_THREAD)

        assert self.thread().journal() == {}

    def test_no_head_is_expected_of_a_thread_that_is_not_there(self) -> None:
        with raises(Conflict, code="thread_missing"):
            self.write(values={"a": 1}, expect=None)

    def test_a_write_can_make_sure_that_there_is_no_head(self) -> None:
        chat = self.thread()
        with raises(Conflict, code="thread_missing"):
            self.write(expect=None)
        chat.record("a", 1)

        self.write(expect=None)

        chat.save({"n": 1})
        with raises(Conflict, code="head_moved"):
            self.write(expect=None)

    def test_the_head_of_a_deleted_thread_is_not_found(self) -> None:
        [head] = self.filled(1)
        self.thread().delete()

        with raises(Conflict, code="thread_deleted"):
            self.write(values={"a": 1}, expect=head, start=NEW_THREAD)

        assert self.thread().journal() == {}


class FamilyEntryTests(PortCases):
    """Entries that are recorded once in a family, and listings by prefix."""

    def test_of_a_family_only_the_first_records_a_key(self) -> None:
        self.filled(1)
        self.thread().fork("fork")
        self.write("fork", values={"grant": "theirs"}, family_wide=True)

        [entry] = self.write(values={"grant": "ours"}, family_wide=True)

        assert described([entry]) == [("fork", "grant", "theirs")]
        assert self.thread().journal() == {}
        assert self.thread("fork").journal() == {"grant": "theirs"}

    def test_the_same_thread_gets_what_it_recorded(self) -> None:
        self.filled(1)
        self.write(values={"grant": 1}, family_wide=True)

        assert described(self.write(values={"grant": 2}, family_wide=True)) == [
            ("chat", "grant", 1)
        ]

    def test_of_several_those_that_are_new_are_recorded(self) -> None:
        self.filled(1)
        self.thread().fork("fork").record("b", "theirs")

        found = self.write(values={"a": 1, "b": 2, "c": 3}, family_wide=True)

        assert described(found) == [
            ("chat", "a", 1),
            ("fork", "b", "theirs"),
            ("chat", "c", 3),
        ]
        assert self.thread().journal() == {"a": 1, "c": 3}

    def test_another_family_is_not_asked(self) -> None:
        self.filled(1)
        self.filled(1, "other")
        self.write("other", values={"grant": "theirs"}, family_wide=True)

        [entry] = self.write(values={"grant": "ours"}, family_wide=True)

        assert entry.value == "ours"

    def test_what_is_recorded_on_a_checkpoint_is_another_entry(self) -> None:
        [saved] = self.filled(1)
        fork = self.thread().fork("fork")
        fork.record("grant", "of the checkpoint", checkpoint=saved)

        [own] = self.write(values={"grant": "own"}, family_wide=True)
        [shared] = self.write(
            values={"grant": "mine"}, checkpoint=saved.id, family_wide=True
        )

        assert own.value == "own"
        assert shared.value == "of the checkpoint"

    def test_a_deleted_thread_recorded_nothing(self) -> None:
        self.filled(1)
        self.thread().fork("fork")
        self.write("fork", values={"grant": "theirs"}, family_wide=True)
        self.thread("fork").delete()

        [entry] = self.write(values={"grant": "ours"}, family_wide=True)

        assert entry.value == "ours"

    def test_a_family_is_asked_whoever_opened_the_store(self) -> None:
        self.filled(1)
        self.thread().fork("fork")
        rival = self.rival()
        self.write("fork", values={"grant": 1}, family_wide=True, store=rival)

        [entry] = self.write(values={"grant": 2}, family_wide=True)

        assert entry.value == 1

    def test_a_new_thread_is_a_family_of_its_own(self) -> None:
        [entry] = self.write(values={"a": 1}, family_wide=True, start=NEW_THREAD)

        assert entry.value == 1
        assert self.thread().journal() == {"a": 1}

    def test_entries_are_listed_by_the_beginning_of_their_keys(self) -> None:
        [saved] = self.filled(1)
        chat = self.thread()
        keys = ["x:2", "x:1", "y:1", "x", "x%", "X:1", "x:é", "x:🔑"]
        for key in keys:
            chat.record(key, key)
        chat.record("x:3", "of a checkpoint", checkpoint=saved)

        def begun(prefix: str, checkpoint: str = "") -> list[str]:
            query = Entries(thread="chat", checkpoint=checkpoint, prefix=prefix)
            return [key for _, key, _ in self.listed(query)]

        assert begun("x:") == ["x:2", "x:1", "x:é", "x:🔑"]
        assert begun("x%") == ["x%"]
        assert begun("x_") == begun("z") == []
        assert begun("") == keys
        assert begun("x:", saved.id) == ["x:3"]

    def test_a_family_lists_what_its_threads_recorded_on_themselves(self) -> None:
        [saved] = self.filled(1)
        chat, fork = self.thread(), self.thread().fork("fork")
        gone = chat.fork("gone")
        fork.record("x:1", "fork")
        chat.record("x:1", "chat")
        fork.record("y:1", "another beginning")
        chat.record("x:2", "of a checkpoint", checkpoint=saved)
        gone.record("x:3", "of a deleted thread")
        fork.record("x:0", "last")
        self.filled(1, "other")
        self.thread("other").record("x:1", "of another family")
        gone.delete()

        found = self.listed(FamilyEntries(family=self.family(), prefix="x:"))

        assert found == [
            ("fork", "x:1", "fork"),
            ("chat", "x:1", "chat"),
            ("fork", "x:0", "last"),
        ]


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
