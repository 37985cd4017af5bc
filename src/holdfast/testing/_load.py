"""Loading: the state at a reference, as a type, and what changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import msgspec

from holdfast.errors import FormatMismatch, NotFound, Unstorable
from holdfast.testing._cases import LONG, Cases, untyped
from holdfast.testing._raises import raises


@dataclass
class Chat:
    """A state as a dataclass."""

    messages: list[str]
    budget: int = 5


class SampleMessage(TypedDict):
    """A part of a state as a TypedDict."""

    role: str
    text: str


class SampleRun(msgspec.Struct):
    """A state as a msgspec struct."""

    messages: list[SampleMessage]
    cost: float | None = None


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

    def test_a_state_is_loaded_as_a_dataclass(self) -> None:
        self.thread().save({"messages": ["hi"]})

        assert self.thread().load(type=Chat) == Chat(["hi"], 5)

    def test_a_state_is_loaded_as_a_typed_dict(self) -> None:
        self.thread().save({"role": "user", "text": LONG})

        loaded = self.thread().load(type=SampleMessage)

        assert loaded == {"role": "user", "text": LONG}

    def test_a_state_is_loaded_as_a_struct(self) -> None:
        self.thread().save({"messages": [{"role": "user", "text": "hi"}]})

        run = self.thread().load(type=SampleRun)

        assert run == SampleRun([{"role": "user", "text": "hi"}])

    def test_a_state_is_loaded_as_a_plain_type(self) -> None:
        self.thread().save([1, 2])

        assert self.thread().load(type=list[int]) == [1, 2]
        assert self.thread().load(type=tuple[int, int]) == (1, 2)

    def test_a_state_of_another_type_does_not_fit(self) -> None:
        saved = self.thread().save({"messages": "not a list"})

        with raises(FormatMismatch):
            self.thread().load(type=Chat)
        with raises(FormatMismatch):
            self.store.load(saved, type=SampleRun)
        assert self.thread().load() == {"messages": "not a list"}

    def test_an_older_state_is_loaded_as_a_type(self) -> None:
        chat = self.thread()
        first = chat.save({"messages": ["a"], "budget": 1})
        chat.save({"messages": ["b"]})

        assert chat.load(first, type=Chat) == Chat(["a"], 1)
        assert self.store.load(first.id, type=Chat) == Chat(["a"], 1)

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

    def test_loading_an_old_state_does_not_disturb_the_next_save(self) -> None:
        chat = self.thread()
        for n in range(4):
            chat.append(m=[f"{n} {LONG}"])
            chat.load("@")
            chat.load(chat.history(None)[-1])

        assert chat.load() == {"m": [f"{n} {LONG}" for n in range(4)]}

    def test_a_small_cache_changes_nothing(self) -> None:
        store = self.open(cache_size=0)
        chat, other = store.thread("chat"), store.thread("other")
        for n in range(10):
            chat.append(m=[f"{n} {LONG}"])
            other.save({"m": [f"{m} {LONG}" for m in range(n + 1)]})

        assert chat.load() == other.load() == {"m": [f"{n} {LONG}" for n in range(10)]}

    def test_a_difference_is_structural(self) -> None:
        chat = self.thread()
        first = chat.save({"m": ["a", LONG], "gone": 1, "budget": 5})
        chat.save({"m": ["a", LONG, "b"], "budget": 4, "new": None})

        diff = chat.diff(first)

        assert {change.path for change in diff.added} == {("m", 2), ("new",)}
        assert {change.path for change in diff.removed} == {("gone",)}
        assert {change.path for change in diff.changed} == {("budget",)}
        assert not chat.diff("@", "@").changes

    def test_checkpoints_of_two_threads_can_be_compared(self) -> None:
        ours = self.thread("a").save({"n": 1})
        theirs = self.thread("b").save({"n": 2})

        [change] = self.thread("a").diff(ours, theirs).changes

        assert (change.path, change.old, change.new) == (("n",), 1, 2)


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

    def test_a_checkpoint_of_another_thread_is_foreign(self) -> None:
        self.filled(1)
        theirs = self.thread("other").save({})

        with raises(NotFound, "foreign") as refused:
            self.thread().load(theirs)

        assert refused.error.reference == theirs.id
        with raises(NotFound):
            self.thread().load(theirs.id)

    def test_a_record_that_is_held_means_the_stored_one(self) -> None:
        held, _ = self.filled(2)
        self.thread().label("later", held)

        assert self.thread().get(held).label == "later"

    def test_what_is_no_reference_is_refused(self) -> None:
        self.filled(1)

        for wrong in untyped("", "@x", "@~-1", "@@", "a\0b", 5, None, b"@"):
            with raises(Unstorable):
                self.thread().get(wrong)

    def test_the_store_has_no_head(self) -> None:
        self.filled(1)

        for wrong in untyped("@", "label:x", "tag:x"):
            with raises(Unstorable):
                self.store.get(wrong)
