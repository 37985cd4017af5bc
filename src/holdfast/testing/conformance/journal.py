"""The journal: results recorded once under a key."""

from __future__ import annotations

from holdfast.errors import Conflict, NotFound, Unstorable
from holdfast.testing.conformance.cases import Cases, raises, untyped


class JournalTests(Cases):
    """Put if absent, on a thread or on a checkpoint."""

    def test_the_first_value_under_a_key_stays(self) -> None:
        chat = self.thread()

        assert chat.record("call", {"cost": 1}) == {"cost": 1}
        assert chat.record("call", {"cost": 2}) == {"cost": 1}
        assert chat.recorded("call") == {"cost": 1}

    def test_of_two_recorders_both_learn_what_is_in_force(self) -> None:
        chat, same = self.thread(), self.rival().thread("chat")

        assert same.record("call", "theirs") == "theirs"
        assert chat.record("call", "ours") == "theirs"

    def test_a_value_is_replaced_on_request(self) -> None:
        chat = self.thread()
        chat.record("call", 1)

        assert chat.record("call", 2, replace=True) == 2
        assert chat.record("other", 3, replace=True) == 3
        assert chat.journal() == {"call": 2, "other": 3}

    def test_what_was_not_recorded_is_the_default(self) -> None:
        chat = self.thread()
        chat.record("nothing", None)

        assert chat.recorded("nothing", "default") is None
        assert chat.recorded("missing") is None
        assert chat.recorded("missing", "default") == "default"
        assert self.thread("nobody").journal() == {}

    def test_thread_and_checkpoints_have_a_journal_each(self) -> None:
        first, second = self.filled(2)
        chat = self.thread()
        chat.record("call", "thread")
        chat.record("call", "first", checkpoint=first)
        chat.record("call", "second", checkpoint=second.id)

        assert chat.journal() == {"call": "thread"}
        assert chat.journal(checkpoint=first.id) == {"call": "first"}
        assert chat.recorded("call", checkpoint=second) == "second"

    def test_an_entry_may_come_before_its_checkpoint(self) -> None:
        chat = self.thread()
        chat.save({"n": 1})
        chat.record("call", "early", checkpoint="later")
        chat.save({"n": 2}, id="later", journal={"call": "late", "other": 1})

        assert chat.journal(checkpoint="later") == {"call": "early", "other": 1}

    def test_an_entry_may_come_before_its_thread(self) -> None:
        chat = self.store.thread("chat", kind="agent", owner="me")
        chat.record("call", 1)

        assert (chat.head, chat.step) == (None, 0)
        assert (len(chat.history()), len(self.store.threads())) == (0, 0)
        with raises(NotFound):
            chat.load()
        assert chat.save({"n": 1}, expect=None).step == 1
        assert chat.recorded("call") == 1
        about = chat.about
        assert about is not None
        assert (about.kind, about.owner) == ("agent", "me")

    def test_a_thread_that_only_recorded_is_not_there_yet(self) -> None:
        chat = self.thread()
        chat.record("call", 1)

        assert chat.about is None

    def test_a_thread_that_only_recorded_can_be_deleted(self) -> None:
        chat = self.thread()
        chat.record("call", 1)

        assert chat.delete() == 1
        assert chat.journal() == {}

    def test_several_are_recorded_at_once(self) -> None:
        chat = self.thread()
        chat.record("b", "first")

        in_force = chat.record_all({"a": 1, "b": 2, "c": [3]})

        assert in_force == {"a": 1, "b": "first", "c": [3]}
        assert list(chat.journal()) == ["b", "a", "c"]
        assert chat.record_all({}) == {}

    def test_entries_saved_with_a_checkpoint_belong_to_it(self) -> None:
        chat = self.thread()
        saved = chat.save({"n": 1}, journal={"call": (1, b"x")})

        assert chat.journal(checkpoint=saved) == {"call": (1, b"x")}
        assert chat.journal() == {}
        assert self.store.stats().journal_entries == 1

    def test_a_refused_save_records_nothing(self) -> None:
        first, _ = self.filled(2)
        chat = self.thread()

        with raises(Conflict):
            chat.save({"n": 3}, expect=first, id="mine", journal={"call": 1})

        assert chat.journal(checkpoint="mine") == {}

    def test_keys_are_text_of_any_kind(self) -> None:
        chat = self.thread()
        keys = ["a/b", "ключ", "🔑", "'; drop table journal; --", "%", " ", "k" * 512]
        for n, key in enumerate(keys):
            chat.record(key, n)

        assert chat.journal() == {key: n for n, key in enumerate(keys)}
        for wrong in untyped("", "a\0", "k" * 513, 5, None):
            with raises(Unstorable):
                chat.record(wrong, 1)
            with raises(Unstorable):
                chat.recorded(wrong)

    def test_the_journal_is_there_after_reopening(self) -> None:
        self.thread().record("call", 1)
        self.thread().save({}, id="a", journal={"call": 2})

        chat = self.reopen().thread("chat")

        assert chat.record("call", 3) == 1
        assert chat.record("call", 3, checkpoint="a") == 2

    def test_recording_a_key_again_hides_no_thread_from_a_listing(self) -> None:
        """Each thread keeps a position of its own in the order of the listing."""
        first, second = self.store.thread("first"), self.store.thread("second")
        first.save({}, id="one")
        first.record("key", 1)
        first.record("key", 2)
        second.save({})
        first.record("key", 3, checkpoint="two")
        first.save({}, id="two", journal={"key": 4})
        self.store.thread("third").save({})

        listed = list(self.store.threads(limit=1))
        while len(page := self.store.threads(limit=1, after=listed[-1].changed)):
            listed += page

        assert [thread.id for thread in listed] == ["third", "first", "second"]

    def test_recording_moves_no_head(self) -> None:
        head = self.filled(2)[-1]
        chat = self.thread()
        chat.record("call", 1)

        assert chat.save({"n": 3}, expect=head).step == 3

    def test_the_journal_goes_with_its_thread(self) -> None:
        saved = self.filled(1)[0]
        chat = self.thread()
        chat.record("call", 1)
        chat.record("call", 1, checkpoint=saved)
        chat.delete()

        assert chat.journal() == chat.journal(checkpoint=saved) == {}
        assert self.store.stats().journal_entries == 0
