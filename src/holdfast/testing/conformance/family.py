"""A thread together with its forks."""

from __future__ import annotations

from holdfast.testing.conformance.cases import Cases


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
