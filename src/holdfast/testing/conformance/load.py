"""Loading: the state at a reference, and the texts that are references."""

from __future__ import annotations

from holdfast.errors import NotFound
from holdfast.retention import Retention
from holdfast.testing.conformance.cases import LONG, Cases, raises


class LoadTests(Cases):
    """The state at a reference, as it is or as a type."""

    def test_what_is_missing_is_not_found(self) -> None:
        with raises(NotFound) as missing:
            self.thread("nobody").load()
        assert isinstance(missing.error, LookupError)
        assert missing.error.thread == "nobody"
        with raises(NotFound):
            self.thread("nobody").get()
        self.filled(1)
        with raises(NotFound):
            self.thread().load("nothing")
        with raises(NotFound):
            self.store.get("nothing")
        with raises(NotFound):
            self.store.load("nothing")

    def test_a_checkpoint_of_any_thread_is_loaded_from_the_store(self) -> None:
        saved = self.thread("a").save({"text": LONG})
        self.thread("b").save({})

        assert self.store.load(saved) == self.store.load(saved.id) == {"text": LONG}
        assert self.store.get(saved.id) == saved

    def test_a_checkpoint_whose_id_two_threads_use_is_loaded(self) -> None:
        ours = self.thread("a").save({"n": 1}, id="same")
        theirs = self.thread("b").save({"n": 2}, id="same")

        assert self.store.load(ours) == {"n": 1}
        assert self.store.load(theirs) == {"n": 2}
        with raises(NotFound, "ambiguous"):
            self.store.load("same")

    def test_a_small_cache_changes_nothing(self) -> None:
        store = self.open(cache_size=0)
        chat, other = store.thread("chat"), store.thread("other")
        for n in range(10):
            chat.append(m=[f"{n} {LONG}"])
            other.save({"m": [f"{m} {LONG}" for m in range(n + 1)]})

        assert chat.load() == other.load() == {"m": [f"{n} {LONG}" for n in range(10)]}


class ReferenceTests(Cases):
    """The texts that name a checkpoint."""

    def test_the_head_and_those_before_it(self) -> None:
        self.filled(4)
        chat = self.thread()
        names = ["@", "@~0", "@~1", "@~", "@^", "@^^", "@~3"]

        assert [chat.get(name).step for name in names] == [4, 4, 3, 3, 3, 2, 1]
        with raises(NotFound):
            chat.get("@~4")

    def test_those_before_the_head_follow_its_line(self) -> None:
        saved = self.filled(4)
        chat = self.thread()
        chat.rewind(saved[1])
        chat.save({"n": "branch"})

        assert chat.load("@~1") == {"n": 2}

    def test_an_id_or_the_beginning_of_one(self) -> None:
        chat = self.thread()
        saved = chat.save({}, id="abcdef")
        chat.save({}, id="abd")

        assert chat.get("abcdef") == chat.get("abc") == saved
        assert self.store.get("abc") == saved

    def test_a_whole_id_comes_before_a_prefix(self) -> None:
        chat = self.thread()
        short = chat.save({}, id="ab")
        chat.save({}, id="abc")

        assert chat.get("ab") == self.store.get("ab") == short

    def test_an_ambiguous_prefix_is_not_found_and_the_error_lists_the_matches(
        self,
    ) -> None:
        chat = self.thread()
        for name in ("abc", "abd", "xyz"):
            chat.save({}, id=name)

        with raises(NotFound, "ambiguous") as refused:
            chat.get("ab")
        assert set(refused.error.matches) == {"abc", "abd"}
        with raises(NotFound, "ambiguous") as refused:
            self.store.get("ab")
        assert set(refused.error.matches) == {"abc", "abd"}

    def test_ids_of_other_threads_do_not_make_it_ambiguous(self) -> None:
        ours = self.thread().save({}, id="abc")
        self.thread("other").save({}, id="abd")
        self.thread().fork("fork").save({}, id="abe")

        assert self.thread().get("ab") == ours

    def test_many_ids_of_a_fork_do_not_hide_the_one_that_is_meant(self) -> None:
        self.filled(1)
        fork = self.thread().fork("fork")
        for n in range(20):
            fork.save({}, id=f"ab{n:02}")
        ours = self.thread().save({}, id="abx")

        assert self.thread().get("ab") == ours

    def test_the_newest_with_a_label_or_tag(self) -> None:
        chat = self.thread()
        chat.save({"n": 1}, label="x", tags=["t"])
        chat.save({"n": 2}, label="x", tags=["t"])
        chat.save({"n": 3})

        assert chat.load("label:x") == chat.load("tag:t") == {"n": 2}
        with raises(NotFound):
            chat.load("label:y")
        with raises(NotFound):
            chat.load("tag:x")


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
