"""Arguments and options that are refused before a backend sees them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.errors import (
    Closed,
    Unstorable,
)
from holdfast.testing import raises
from holdfast.testing.conformance.cases import Cases, steps, untyped


def giving(value: Any) -> Callable[[], Any]:
    """A callable that always gives the same value."""
    return lambda: value


class LimitTests(Cases):
    """Limits, orders and what is listed without a limit."""

    def test_a_limit_is_a_positive_number(self) -> None:
        self.filled(1)

        for wrong in untyped(0, -1, 1.5, "3", True):
            with raises(Unstorable):
                self.thread().history(wrong)

    def test_an_order_is_one_of_two(self) -> None:
        self.filled(1)

        for wrong in untyped("Oldest", "newest first", None, 1):
            with raises(Unstorable):
                self.thread().history(order=wrong)

    def test_a_hundred_are_listed_unless_asked_otherwise(self) -> None:
        self.filled(105)
        chat = self.thread()

        assert steps(chat.history()) == list(range(105, 5, -1))
        assert len(chat.history(None)) == 105
        assert len(chat.history(3)) == 3

    def test_find_needs_something_to_look_for(self) -> None:
        with raises(Unstorable):
            self.thread().find()

    def test_a_page_of_the_log_has_a_positive_limit(self) -> None:
        self.filled(1)

        for wrong in untyped(0, -1, "3", True):
            with raises(Unstorable):
                self.thread().moves(wrong)

    def test_the_limit_of_a_listing_is_a_positive_number(self) -> None:
        for wrong in untyped(0, -1, 1.5, "3", True):
            with raises(Unstorable):
                self.store.threads(limit=wrong)

    def test_a_hundred_threads_are_listed_unless_asked_otherwise(self) -> None:
        for n in range(102):
            self.filled(1, f"{n}")

        assert len(self.store.threads()) == 100
        assert len(self.store.threads(limit=None)) == 102

    def test_a_page_has_a_positive_limit(self) -> None:
        for wrong in untyped(0, -1, "3", True, None):
            with raises(Unstorable):
                self.store.changes(limit=wrong)

    def test_no_cursor_is_the_beginning_of_the_feed(self) -> None:
        self.filled(2)

        [none] = untyped(None)
        assert self.store.changes(none).items == self.store.changes().items != ()


class TooLargeTests(Cases):
    """What is too large is refused with the limit, before anything is written."""

    def test_a_checkpoint_has_a_thousand_tags_at_most(self) -> None:
        many = [f"{n}" for n in range(1000)]
        chat = self.thread()
        chat.save({"n": 1}, tags=many)

        with raises(Unstorable, "unstorable") as refused:
            chat.save({"n": 2}, tags=[*many, "one more"])
        with raises(Unstorable):
            chat.tag("one more")
        assert "1,000 are allowed" in str(refused.error)
        assert chat.find(tag="999") is not None
        assert chat.find(tag="one more") is None

    def test_metadata_are_sixteen_megabytes_at_most(self) -> None:
        self.filled(1)
        chat = self.thread()
        large = {"x": "x" * (16 << 20)}

        for call in (
            lambda: chat.save({"n": 2}, metadata=large),
            lambda: chat.describe(metadata=large),
            lambda: self.store.thread("other", metadata=large).save({}),
        ):
            with raises(Unstorable) as refused:
                call()
            assert "16,777,216 are allowed" in str(refused.error)
        assert chat.load() == {"n": 1}

    def test_a_query_has_four_thousand_characters_at_most(self) -> None:
        with raises(Unstorable):
            self.store.search("word " * 1000)


class TextTests(Cases):
    """Names, ids, marks and references that are no texts, or too long."""

    def test_a_mark_must_be_text(self) -> None:
        self.filled(1)
        chat = self.thread()

        for wrong in untyped("", "a\0b", "x" * 513, 5, b"x", ["x"]):
            with raises(Unstorable):
                chat.label(wrong)
            with raises(Unstorable):
                chat.tag(wrong)
            with raises(Unstorable):
                chat.save({}, label=wrong)
        assert chat.load() == {"n": 1}

    def test_what_cannot_be_a_mark_or_a_thread_is_not_looked_for(self) -> None:
        self.filled(1)
        chat = self.thread()

        for wrong in untyped("", "a\0b", "\ud800", "x" * 513, 5, 1.5, True, b"chat"):
            with raises(Unstorable):
                chat.find(tag=wrong)
            with raises(Unstorable):
                chat.find(label=wrong)
            with raises(Unstorable):
                chat.history(tag=wrong)
            with raises(Unstorable):
                self.store.delete("chat", wrong)
        with raises(Unstorable):
            self.store.delete(*untyped(None))
        assert chat.load() == {"n": 1}

    def test_an_owner_must_be_text(self) -> None:
        self.filled(1)

        for wrong in untyped("", "a\0b", 5, b"x"):
            with raises(Unstorable):
                self.thread().describe(owner=wrong)

    def test_what_cannot_name_a_thread_is_refused(self) -> None:
        for wrong in untyped("", "a\0b", "x" * 513, "é" * 257, "\ud800"):
            with raises(Unstorable):
                self.store.thread(wrong)
        for wrong in untyped(b"a", 5, None, {"a": 1}, ["a"], 1.5):
            with raises(Unstorable):
                self.store.thread(wrong)

    def test_what_cannot_be_an_owner_or_a_kind_is_refused(self) -> None:
        for wrong in untyped("", "a\0b", "x" * 513, 5, b"a"):
            with raises(Unstorable):
                self.store.thread("a", owner=wrong)
            with raises(Unstorable):
                self.store.thread("a", kind=wrong)
            with raises(Unstorable):
                self.thread().save({}, kind=wrong)

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

    def test_an_id_must_not_read_as_a_reference(self) -> None:
        for wrong in untyped("@", "@~1", "label:x", "tag:x", "", "a\0b", "x" * 513):
            with raises(Unstorable):
                self.thread().save({}, id=wrong)
        assert self.thread().head is None


class OptionTests(Cases):
    """Options of a store, and what a clock and a source of ids give."""

    def test_an_option_that_does_not_exist_is_refused(self) -> None:
        for wrong in untyped({"ttl": 5}, {"compres": True}):
            with raises(Unstorable):
                self.open(**wrong)

    def test_an_option_that_makes_no_sense_is_refused(self) -> None:
        for wrong in untyped(
            {"durability": "maybe"},
            {"busy_timeout": -1},
            {"busy_timeout": "5s"},
            {"cache_size": "64 MB"},
            {"retention": 5},
            {"prune_every": 3600},
        ):
            with raises(Unstorable):
                self.open(**wrong)

    def test_a_clock_that_gives_no_microseconds_is_refused(self) -> None:
        for wrong in untyped(5.0, 1.5, "5", None, 10**19):
            store = self.open(clock=giving(wrong))
            with raises(Unstorable):
                store.thread("chat").save({})
            with raises(Unstorable):
                store.thread("chat").record("key", 1)
            assert store.thread("chat").head is None

    def test_a_source_of_ids_that_gives_no_ids_is_refused(self) -> None:
        for wrong in untyped(5, None, "", "@", "label:x", "a\0b", b"x", "x" * 513):
            store = self.open(new_id=giving(wrong))
            with raises(Unstorable):
                store.thread("chat").save({})
            assert store.thread("chat").head is None

    def test_a_store_is_closed_by_its_block(self) -> None:
        with self.open() as store:
            store.thread("chat").save({})

        with raises(Closed):
            store.stats()
