"""The search index follows what happened since the last search."""

from __future__ import annotations

from holdfast.retention import Retention
from holdfast.testing.conformance.search import PADDING, SearchCases, places, user


class SearchUpkeepCases(SearchCases):
    """Conversations that were searched."""

    def begin(self) -> None:
        """A long conversation and a short one that were searched already."""
        self.talk("c", *(f"message {n}: {PADDING}" for n in range(40)), "old needle")
        self.talk("d", "another needle")
        assert self.found("needle") == [("d", 0), ("c", 40)]


class SearchUpkeepTests(SearchUpkeepCases):
    """A search finds what is stored now."""

    def test_an_added_message_is_found(self) -> None:
        self.begin()
        for _ in range(3):
            self.store.conversations.add("c", user("new needle"))
            assert self.found("new needle")[0][0] == "c"

        assert self.found("needle") == [
            ("c", 43), ("c", 42), ("c", 41), ("c", 40), ("d", 0),
        ]  # fmt: skip

    def test_an_edited_message_is_found_as_it_is(self) -> None:
        self.begin()
        conversation = self.store.conversations.load("c")
        conversation.messages[20] = user("edited")
        conversation.messages[40] = user("no more")
        self.store.conversations.save(conversation)

        assert self.found("needle") == [("d", 0)]
        assert self.found("edited") == [("c", 20)]
        assert self.found('"message 20:"') == []
        assert self.found('"message 21:"') == [("c", 21)]

    def test_messages_that_were_cut_off_in_front_are_not_found(self) -> None:
        self.begin()
        conversation = self.store.conversations.load("c")
        del conversation.messages[:10]
        self.store.conversations.save(conversation)

        assert self.found('"message 9:"') == []
        assert self.found('"message 10:"') == [("c", 0)]
        assert self.found("old needle") == [("c", 30)]

    def test_a_rewound_conversation_is_searched_at_its_head(self) -> None:
        self.begin()
        self.store.conversations.add("c", user("new needle"))
        assert self.found("new needle") == [("c", 41)]
        thread = self.store.conversations.thread("c")

        thread.undo()
        assert self.found("new needle") == []
        assert self.found("needle") == [("c", 40), ("d", 0)]

        thread.redo()
        assert self.found("new needle") == [("c", 41)]

        thread.rewind("@~1", hard=True)
        assert self.found("needle") == [("c", 40), ("d", 0)]

    def test_a_fork_is_found_beside_what_it_came_from(self) -> None:
        self.begin()
        thread = self.store.conversations.thread("c")
        thread.fork("conversation:fork")
        self.store.conversations.add("fork", user("forked needle"))

        assert self.found("old needle") == [("fork", 40), ("c", 40)]
        assert self.found("forked needle") == [("fork", 41)]

    def test_a_deleted_conversation_is_not_found(self) -> None:
        self.begin()
        self.store.conversations.delete("c")
        assert self.found("needle") == [("d", 0)]

        self.store.conversations.delete("d")
        assert self.found("needle") == []

    def test_a_new_conversation_with_an_old_id_is_found(self) -> None:
        self.begin()
        self.store.conversations.delete("c")
        self.talk("c", "other", "fresh needle")

        assert self.found("needle") == [("c", 1), ("d", 0)]
        assert self.found("message") == []

    def test_pruning_changes_nothing(self) -> None:
        self.begin()
        for n in range(5):
            self.store.conversations.add("c", user(f"addition {n}"))
        self.store.prune(Retention(last=1))

        assert self.found("needle") == [("c", 40), ("d", 0)]
        assert self.found("addition") == [("c", n) for n in range(45, 40, -1)]

    def test_compacting_changes_nothing(self) -> None:
        self.must_be_able("compact")
        self.begin()
        for n in range(20):
            self.store.conversations.add("d", user(f"small {n}"))
            assert self.found(f"small {n}")[0] == ("d", n + 1)
        self.store.conversations.delete("c")

        for _ in range(2):
            self.store.compact()
            assert self.found("needle") == [("d", 0)]
            assert self.found("small") == [("d", n) for n in range(20, 0, -1)]
            assert self.store.verify().problems == ()

    def test_a_message_is_found_after_reopening(self) -> None:
        self.begin()
        store = self.reopen()

        assert places(store.search("needle")) == [("d", 0), ("c", 40)]

    def test_a_rival_finds_what_was_just_saved(self) -> None:
        self.begin()
        rival = self.rival()

        self.store.conversations.add("c", user("rival needle"))
        assert places(rival.search("rival needle")) == [("c", 41)]

        rival.conversations.add("d", user("rival needle"))
        assert self.found("rival needle") == [("d", 1), ("c", 41)]

    def test_a_store_opened_for_reading_is_searched(self) -> None:
        self.begin()
        self.store.conversations.add("c", user("not searched for yet"))
        reader = self.reopen(read_only=True)

        assert places(reader.search("needle")) == [("c", 40), ("d", 0)]
        assert places(reader.search("not searched")) == [("c", 41)]
