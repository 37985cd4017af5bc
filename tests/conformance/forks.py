"""Forks: what is decided above the threads that share a history."""

from __future__ import annotations

from holdfast.errors import NotFound, Unstorable
from holdfast.testing import raises
from holdfast.testing.conformance.cases import LONG, Cases


class ForkedStateTests(Cases):
    """What a fork begins with, and what its saves cost."""

    def test_saves_in_a_fork_cost_what_is_new(self) -> None:
        chat = self.thread()
        for n in range(20):
            chat.append(m=[f"{n} {LONG}"])
        fork = chat.fork("fork")
        before = self.store.stats().stored_bytes

        fork.append(m=["x" + LONG])
        fork.save({"m": [*fork.load()["m"], "y" + LONG]})

        assert self.store.stats().stored_bytes - before <= 3 * len(LONG)

    def test_a_fork_of_nothing_is_not_found(self) -> None:
        self.filled(1)

        with raises(NotFound):
            self.thread("nobody").fork("fork")
        with raises(NotFound):
            self.thread().fork("fork", at="@~1")
        with raises(Unstorable):
            self.thread().fork("")
        assert self.thread("fork").about is None

    def test_forks_that_edit_the_same_list_do_not_mix(self) -> None:
        chat = self.thread()
        start = [f"{n} {LONG}" for n in range(30)]
        chat.save({"m": start})
        forks = [chat.fork(f"fork {n}") for n in range(4)]
        for n, fork in enumerate(forks):
            for turn in range(3):
                edited = fork.load()["m"]
                edited[n + turn] = f"{fork.id} {turn} {LONG}"
                fork.save({"m": edited, "new": [f"{fork.id} {LONG}"]})

        assert chat.load() == {"m": start}
        for n, fork in enumerate(forks):
            expected = list(start)
            expected[n : n + 3] = [f"{fork.id} {turn} {LONG}" for turn in range(3)]
            assert fork.load() == {"m": expected, "new": [f"{fork.id} {LONG}"]}

    def test_a_name_that_a_fork_took_over_is_saved_to_as_the_fork(self) -> None:
        chat = self.thread()
        chat.append(m=["first"])
        other = chat.fork("other")
        chat.delete()
        again = other.fork(chat.id)

        again.append(m=["again"])
        other.append(m=["other"])

        # The head it began with was saved in the deleted thread of the same name.
        assert again.load() == {"m": ["first", "again"]}
        assert other.load() == {"m": ["first", "other"]}
        assert [move.kind for move in again.moves()] == ["save", "fork"]
        assert self.store.verify().ok
