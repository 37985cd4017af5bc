"""References by step, by the log of the head and by origin."""

from __future__ import annotations

from holdfast.errors import NotFound
from holdfast.retention import Retention
from holdfast.testing.conformance.cases import Cases
from holdfast.testing.conformance.raises import raises


class StepTests(Cases):
    """``@12``: a step on the line of the head."""

    def test_a_step_is_found_on_the_line_of_the_head(self) -> None:
        saved = self.filled(5)
        chat = self.thread()

        assert [chat.get(f"@{n}") for n in range(1, 6)] == saved
        assert chat.get("@003") == saved[2]

    def test_a_step_may_be_inherited(self) -> None:
        first, second, _ = self.filled(3)
        fork = self.thread().fork("fork", at=second)
        fork.save({"n": "fork"})

        assert fork.get("@1") == first
        assert fork.load("@3") == {"n": "fork"}

    def test_a_pruned_step_is_not_found_and_the_error_names_the_nearest(self) -> None:
        chat = self.thread()
        chat.save({"n": 1}, label="first")
        for n in range(2, 6):
            chat.save({"n": n})
        self.store.prune(Retention(last=1))

        with raises(NotFound) as refused:
            chat.get("@3")
        assert "@1" in str(refused.error)
        assert chat.load("@5") == {"n": 5}


class LogReferenceTests(Cases):
    """``@{1}``: where the head was before its last moves; ``@{upstream}``."""

    def test_a_fork_began_with_its_first_move(self) -> None:
        first, second = self.filled(2)
        fork = self.thread().fork("fork", at=first)
        third = fork.save({"n": 3})

        assert [fork.get("@{0}"), fork.get("@{1}")] == [third, first]
        with raises(NotFound):
            fork.get("@{2}")
        assert self.thread().get("@{0}") == second

    def test_what_was_removed_is_not_where_the_head_was(self) -> None:
        chat = self.thread()
        chat.save({"n": 1}, label="kept")
        chat.save({"n": 2})
        chat.rewind("@1")
        chat.save({"n": 3})
        self.store.prune(Retention(last=1))

        assert chat.load("@{0}") == {"n": 3}
        assert chat.load("@{1}") == {"n": 1}
