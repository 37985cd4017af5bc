# ruff: noqa: PLR2004 - a test states its numbers where it uses them
"""Loading: references, types, differences, and stores that are closed or read only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import msgspec

from holdfast.errors import (
    Closed,
    Conflict,
    FormatMismatch,
    NotFound,
    Unstorable,
    Unsupported,
)
from holdfast.retention import Retention
from holdfast.testing._cases import Cases, steps, untyped
from holdfast.testing._raises import raises

LONG = "a value too long for the manifest " * 20


@dataclass
class Chat:
    """A state as a dataclass."""

    messages: list[str]
    budget: int = 5


class Message(TypedDict):
    """A part of a state as a TypedDict."""

    role: str
    text: str


class Run(msgspec.Struct):
    """A state as a msgspec struct."""

    messages: list[Message]
    cost: float | None = None


class LoadingTests(Cases):
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

        loaded = self.thread().load(type=Message)

        assert loaded == {"role": "user", "text": LONG}

    def test_a_state_is_loaded_as_a_struct(self) -> None:
        self.thread().save({"messages": [{"role": "user", "text": "hi"}]})

        run = self.thread().load(type=Run)

        assert run == Run([{"role": "user", "text": "hi"}])

    def test_a_state_is_loaded_as_a_plain_type(self) -> None:
        self.thread().save([1, 2])

        assert self.thread().load(type=list[int]) == [1, 2]
        assert self.thread().load(type=tuple[int, int]) == (1, 2)

    def test_a_state_of_another_type_does_not_fit(self) -> None:
        saved = self.thread().save({"messages": "not a list"})

        with raises(FormatMismatch):
            self.thread().load(type=Chat)
        with raises(FormatMismatch):
            self.store.load(saved, type=Run)
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
    """What may be written where a checkpoint is expected."""

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

    def test_a_whole_id_is_meant_before_a_beginning(self) -> None:
        chat = self.thread()
        short = chat.save({}, id="ab")
        chat.save({}, id="abc")

        assert chat.get("ab") == self.store.get("ab") == short

    def test_an_ambiguous_beginning_is_not_found_and_tells_the_matches(self) -> None:
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


class LifecycleTests(Cases):
    """Opening, reading only, closing."""

    def test_closing_twice_is_fine(self) -> None:
        self.filled(1)

        self.store.close()
        self.store.close()

    def test_a_closed_store_says_so(self) -> None:
        self.filled(1)
        store, chat = self.store, self.thread()
        store.close()

        for call in (
            lambda: chat.save({}),
            lambda: chat.append(m=[1]),
            chat.load,
            chat.history,
            chat.undo,
            chat.delete,
            lambda: chat.fork("fork"),
            lambda: chat.record("key", 1),
            lambda: chat.recorded("key"),
            store.threads,
            store.stats,
            store.changes,
            lambda: store.prune(Retention(last=1)),
            lambda: store.get("a"),
            lambda: chat.head,
        ):
            with raises(Closed):
                call()

    def test_a_store_is_closed_by_its_block(self) -> None:
        with self.open() as store:
            store.thread("chat").save({})

        with raises(Closed):
            store.stats()

    def test_a_read_only_store_reads_everything(self) -> None:
        chat = self.thread()
        chat.save({"text": LONG}, label="x", journal={"k": 1})
        chat.append(m=[LONG])

        store = self.reopen(read_only=True)

        chat = store.thread("chat")
        assert chat.load() == {"text": LONG, "m": [LONG]}
        assert steps(chat.history()) == [2, 1]
        assert chat.journal(checkpoint=chat.get("label:x")) == {"k": 1}
        assert store.stats().checkpoints == 2
        assert len(store.changes()) == 3

    def test_a_read_only_store_changes_nothing(self) -> None:
        self.filled(2)

        store = self.reopen(read_only=True)

        chat = store.thread("chat")
        for call in (
            lambda: chat.save({}),
            lambda: store.thread("new").save({}),
            lambda: chat.append(m=[1]),
            chat.undo,
            lambda: chat.rewind("@~1"),
            lambda: chat.rewind("@~1", hard=True),
            lambda: chat.label("x"),
            lambda: chat.fork("fork"),
            lambda: chat.record("key", 1),
            chat.delete,
            lambda: store.prune(Retention(last=1)),
            store.compact,
        ):
            with raises(Unsupported, "read_only"):
                call()
        assert steps(chat.history()) == [2, 1]
        assert [thread.id for thread in store.threads()] == ["chat"]

    def test_a_refused_call_leaves_the_store_usable(self) -> None:
        chat = self.thread()
        first = chat.save({"n": 1})
        chat.save({"n": 2})

        with raises(Unstorable):
            chat.save({"f": print})
        with raises(Conflict):
            chat.save({"n": 3}, expect=first)
        with raises(NotFound):
            chat.load("nobody")
        with raises(Unstorable):
            self.store.thread("")

        assert chat.save({"n": 3}).step == 3
        assert chat.load() == {"n": 3}

    def test_an_option_that_does_not_exist_is_refused(self) -> None:
        for wrong in untyped({"ttl": 5}, {"durability": "maybe"}, {"compres": True}):
            with raises(Unstorable):
                self.open(**wrong)


class CompressionTests(Cases):
    """``compress=True`` changes the bytes and nothing else."""

    def test_what_was_compressed_comes_back(self) -> None:
        chat = self.open(compress=True).thread("chat")
        for n in range(150):
            chat.append(m=[{"role": "user", "n": n, "content": LONG}])
        chat.save({**chat.load(), "text": LONG * 50})

        loaded = chat.load()

        assert [message["n"] for message in loaded["m"]] == list(range(150))
        assert loaded["text"] == LONG * 50

    def test_it_is_smaller(self) -> None:
        store = self.open(compress=True)
        chat = store.thread("chat")
        for n in range(150):
            chat.append(m=[{"role": "user", "n": n, "content": LONG}])

        assert store.stats().stored_bytes < 0.5 * chat.get().size

    def test_it_is_read_whatever_the_store_was_opened_with(self) -> None:
        self.must_reopen()
        for compress in (True, False, True, False):
            chat = self.reopen(compress=compress).thread("chat")
            for n in range(40):
                chat.append(m=[f"{compress} {n} {LONG}"])

        expected = [
            f"{compress} {n} {LONG}"
            for compress in (True, False, True, False)
            for n in range(40)
        ]
        assert self.reopen().thread("chat").load() == {"m": expected}

    def test_two_stores_agree_on_how_to_compress(self) -> None:
        one = self.open(compress=True).thread("chat")
        other = self.rival(compress=True).thread("chat")
        for n in range(100):
            one.append(m=[f"{n} one {LONG}"])
            other.append(m=[f"{n} other {LONG}"])

        expected = [f"{n} {who} {LONG}" for n in range(100) for who in ("one", "other")]
        assert one.load() == other.load() == {"m": expected}

    def test_what_cannot_be_compressed_comes_back(self) -> None:
        store = self.open(compress=True)
        same, tiny = store.thread("same"), store.thread("tiny")
        for n in range(100):
            same.save({"bytes": bytes(2000)})
            same.append(m=["x" * 800])
            tiny.append(m=[n], text=["y" * 300])

        assert same.load()["bytes"] == bytes(2000)
        assert tiny.load() == {"m": [*range(100)], "text": ["y" * 300] * 100}
