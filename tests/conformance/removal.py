"""Removing threads and checkpoints: what is refused."""

from __future__ import annotations

from holdfast.errors import Conflict, Unstorable
from holdfast.testing import raises
from holdfast.testing.conformance.cases import Cases


class RefusedRemovalTests(Cases):
    """Checkpoints that must stay."""

    def test_the_only_checkpoint_of_a_thread_stays(self) -> None:
        [only] = self.filled(1)
        chat = self.thread()

        with raises(Conflict, "last_checkpoint"):
            chat.delete(only)

        assert chat.load() == {"n": 1}

    def test_the_head_of_a_fork_stays(self) -> None:
        first, _ = self.filled(2)
        self.thread().fork("fork", at=first)

        with raises(Conflict, "in_use") as refused:
            self.thread().delete(first)

        assert refused.error.thread == "fork"
        assert self.thread("fork").load() == {"n": 1}

    def test_a_fork_does_not_delete_what_it_inherited(self) -> None:
        saved = self.filled(2)
        fork = self.thread().fork("fork")

        with raises(Conflict, "foreign"):
            fork.delete(saved[0])

        assert self.thread().load(saved[0]) == {"n": 1}


class SelectedRemovalTests(Cases):
    """Threads by names and filters together."""

    def test_names_and_filters_add_up(self) -> None:
        self.filled(1, "a")
        self.store.thread("b", owner="me").save({})
        self.filled(1, "c")

        assert self.store.delete("a", owner="me") == 2
        assert [thread.id for thread in self.store.threads()] == ["c"]

    def test_deleting_needs_at_least_one_name(self) -> None:
        self.filled(1)

        with raises(Unstorable):
            self.store.delete()

        assert self.thread().load() == {"n": 1}
