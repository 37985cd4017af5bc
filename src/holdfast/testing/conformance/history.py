"""The checkpoints of a thread, and of the family of its forks."""

from __future__ import annotations

from holdfast._values.records import Checkpoint
from holdfast.testing.conformance.cases import Cases, steps


class HistoryTests(Cases):
    """Ancestors of the head, newest first, in pages."""

    def test_history_lists_the_newest_first(self) -> None:
        saved = self.filled(4)

        assert list(self.thread().history()) == saved[::-1]

    def test_history_of_nothing_is_empty(self) -> None:
        assert list(self.thread("nobody").history()) == []
        assert list(self.thread("nobody").history(all=True)) == []
        assert list(self.thread("nobody").moves()) == []

    def test_a_history_is_counted_without_being_listed(self) -> None:
        assert self.thread().count() == 0
        saved = self.filled(120)
        chat, fork = self.thread(), self.thread().fork("fork", at=saved[9])
        assert (chat.count(), fork.count()) == (120, 10)

        fork.save({"n": "own"})
        chat.rewind(saved[4])
        chat.save({"n": "other"})

        assert (chat.count(), fork.count()) == (6, 11)
        chat.delete()
        assert (chat.count(), fork.count()) == (0, 11)

    def test_history_begins_with_the_oldest_on_request(self) -> None:
        self.filled(4)
        chat = self.thread()

        assert steps(chat.history(order="oldest")) == [1, 2, 3, 4]
        assert steps(chat.history(2, order="oldest")) == [1, 2]

    def test_a_page_continues_behind_the_last_of_the_one_before(self) -> None:
        self.filled(7)
        chat = self.thread()
        found: list[Checkpoint] = []
        page = chat.history(3)
        while page:
            found.extend(page)
            page = chat.history(3, before=page[-1])

        assert steps(found) == [7, 6, 5, 4, 3, 2, 1]

    def test_a_page_stays_in_place_while_others_save(self) -> None:
        self.filled(4)
        chat = self.thread()
        page = chat.history(2)
        chat.save({"n": 5})

        assert steps(chat.history(2, before=page[-1])) == [2, 1]

    def test_only_a_page_that_may_have_a_next_one_has_a_cursor(self) -> None:
        self.filled(3)
        chat = self.thread()

        assert chat.history(3).cursor is not None
        assert chat.history(4).cursor is None
        assert chat.history(3, before="@~2").cursor is None

    def test_saving_while_walking_through_the_history_is_fine(self) -> None:
        self.filled(5)
        chat = self.thread()
        for checkpoint in chat.history():
            chat.save({"again": chat.load(checkpoint)})

        assert chat.step == 10
        assert chat.load() == {"again": {"n": 1}}

    def test_what_was_rewound_is_listed_only_with_all(self) -> None:
        self.filled(3)
        chat = self.thread()
        chat.rewind("@~2")
        chat.save({"n": "other"})

        assert [chat.load(c)["n"] for c in chat.history()] == ["other", 1]
        assert [chat.load(c)["n"] for c in chat.history(all=True)] == ["other", 3, 2, 1]
        assert steps(chat.history(all=True)) == [2, 3, 2, 1]

    def test_all_is_paged_as_well(self) -> None:
        self.filled(4)
        chat = self.thread()
        chat.rewind("@~3")
        chat.save({"n": 5})
        everything = chat.history(all=True)

        first = chat.history(2, all=True)
        second = chat.history(2, all=True, before=first[-1])
        third = chat.history(2, all=True, before=second[-1])

        assert [*first, *second, *third] == list(everything)
        assert list(chat.history(all=True, order="oldest")) == list(everything)[::-1]

    def test_history_is_filtered_by_label_and_tag(self) -> None:
        chat = self.thread()
        chat.save({"n": 1}, label="x", tags=["a"])
        chat.save({"n": 2}, label="y", tags=["a", "b"])
        chat.save({"n": 3}, label="x", tags=["b"])
        chat.save({"n": 4})

        assert steps(chat.history(label="x")) == [3, 1]
        assert steps(chat.history(tag="a")) == [2, 1]
        assert steps(chat.history(tag="b", label="x")) == [3]
        assert steps(chat.history(1, tag="b")) == [3]
        assert steps(chat.history(tag="b", before="@~1")) == [2]
        assert steps(chat.history(tag="a", order="oldest")) == [1, 2]
        assert list(chat.history(tag="c")) == []

    def test_filters_leave_out_what_was_rewound_unless_all_is_asked(self) -> None:
        chat = self.thread()
        chat.save({"n": 1}, tags=["t"])
        chat.save({"n": 2}, tags=["t"])
        chat.rewind("@~1")

        assert steps(chat.history(tag="t")) == [1]
        assert steps(chat.history(tag="t", all=True)) == [2, 1]


class MatchTests(Cases):
    """The newest checkpoint with a label or a tag, or nothing."""

    def test_find_gives_the_newest_or_nothing(self) -> None:
        chat = self.thread()
        assert chat.find(label="x") is None
        chat.save({"n": 1}, label="x", tags=["t"])
        newest = chat.save({"n": 2}, label="x", tags=["t"])
        chat.save({"n": 3})

        assert chat.find(label="x") == chat.find(tag="t") == newest
        assert chat.find(label="y") is None

    def test_find_takes_a_label_and_a_tag_together(self) -> None:
        chat = self.thread()
        both = chat.save({"n": 1}, label="x", tags=["t"])
        chat.save({"n": 2}, label="x")
        chat.save({"n": 3}, tags=["t"])

        assert chat.find(label="x", tag="t") == both

    def test_marks_of_other_threads_are_not_found(self) -> None:
        self.thread("other").save({}, label="x", tags=["t"])
        self.filled(1)
        chat = self.thread()

        assert (chat.find(label="x"), chat.find(tag="t")) == (None, None)

    def test_marks_are_compared_as_whole_texts(self) -> None:
        chat = self.thread()
        chat.save({}, label="Refund", tags=["a", '"b"', "100%"])

        assert chat.find(label="refund") is None
        assert chat.find(tag="%") is None
        assert chat.find(tag="b") is None
        assert chat.find(tag='"b"') == chat.find(tag="100%") == chat.head

    def test_the_cursor_of_a_page_continues_it(self) -> None:
        saved = self.filled(5)
        page = self.thread().history(2)

        rest = self.thread().history(before=page.cursor)

        assert [c.id for c in (*page, *rest)] == [c.id for c in saved[::-1]]
        assert rest.cursor is None


class FamilyTests(Cases):
    """Threads that share history, and all of their checkpoints."""

    def test_a_family_is_a_thread_and_its_forks_last_used_first(self) -> None:
        self.filled(3)
        fork = self.thread().fork("fork", at="@~1")
        self.thread("stranger").save({"n": 0})
        fork.fork("fork of a fork").save({"n": 9})

        for name in ("chat", "fork", "fork of a fork"):
            found = [record.id for record in self.thread(name).family()]
            assert found == ["fork of a fork", "fork", "chat"]

    def test_a_tree_has_what_was_rewound_and_what_forks_saved(self) -> None:
        saved = self.filled(3)
        fork = self.thread().fork("fork", at=saved[0])
        own = fork.save({"n": 9})
        self.thread().rewind(saved[0])

        assert list(self.thread().tree()) == [own, *saved[::-1]]
        assert list(fork.tree()) == list(self.thread().tree())

    def test_a_tree_is_listed_in_pages(self) -> None:
        saved = self.filled(5)
        chat = self.thread()

        first = chat.tree(2)
        second = chat.tree(10, before=first.cursor)

        assert [*first, *second] == saved[::-1]
        assert second.cursor is None

    def test_a_deleted_fork_leaves_the_family(self) -> None:
        self.filled(2)
        self.thread().fork("fork").delete()

        assert [record.id for record in self.thread().family()] == ["chat"]

    def test_a_tree_keeps_what_forks_have_of_a_deleted_thread(self) -> None:
        saved = self.filled(3)
        self.thread().fork("fork", at=saved[1])
        self.thread().delete()

        assert list(self.thread("fork").tree(5)) == [saved[1], saved[0]]

        own = self.thread("fork").fork("chat", at=saved[0]).save({"n": 9})

        assert list(self.thread("fork").tree(5)) == [own, saved[1], saved[0]]
        assert list(self.thread("fork").tree(2)) == [own, saved[1]]
