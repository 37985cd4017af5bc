"""Listing threads, by their last use and by their weight; names are any text."""

from __future__ import annotations

from holdfast._values.records import Page, ThreadRecord
from holdfast.testing.conformance.cases import LONG, Cases, untyped

HOSTILE = [
    "'; drop table thread; --",
    '"quoted"',
    "100%",
    "a_b",
    "*",
    "?",
    "[a-z]",
    "../x",
    "../../etc/passwd",
    "a/b",
    "/absolute",
    "a\\b",
    ".",
    "..",
    ".hidden",
    "foo.json",
    "foo",
    "a..b",
    "CON",
    "nul.txt",
    "COM1:",
    "trailing.",
    "trailing ",
    " ",
    "\n",
    "\x01\x7f",
    "\ufeff",
    "Größe",
    "ключ",
    "鍵",
    "مفتاح",
    "\u202egnirts",
    "👩‍👩‍👧",
    "e\u0301",
    "\u00e9",
    "a",
    "A",
    "@",
    "@~1",
    "label:x",
    "-1",
    "null",
    "x" * 512,
    "é" * 256,
]


def names(page: Page[ThreadRecord]) -> list[str]:
    """The names of some threads, in their order."""
    return [thread.id for thread in page]


class ListingTests(Cases):
    """Threads, last used first, in pages."""

    def test_the_thread_used_last_comes_first(self) -> None:
        for name in "abc":
            self.filled(1, name)
        assert names(self.store.threads()) == ["c", "b", "a"]

        self.thread("a").save({})

        assert names(self.store.threads()) == ["a", "c", "b"]

    def test_the_clock_does_not_change_that(self) -> None:
        for n, name in enumerate("abc"):
            self.clock.now -= n * 1_000_000
            self.filled(1, name)

        assert names(self.store.threads()) == ["c", "b", "a"]

    def test_thousands_of_changes_do_not_change_that(self) -> None:
        # A backend may sort by a part of the number of the last change first.
        many = {f"{n}": n for n in range(2100)}
        for name in "abc":
            self.filled(1, name)
        self.thread("b").save({}, journal=many)
        self.filled(1, "d")
        self.thread("a").save({})

        found: list[str] = []
        cursor: int | None = None
        for _ in "adbc":
            page = self.store.threads(limit=1, after=cursor)
            found, cursor = found + names(page), page.cursor
        assert found == names(self.store.threads()) == ["a", "d", "b", "c"]
        assert names(self.store.threads(kind="thread", limit=3)) == ["a", "d", "b"]

    def test_a_record_describes_its_thread(self) -> None:
        chat = self.store.thread("chat", kind="agent", owner="me", metadata={"k": [1]})
        self.clock.now = 1000
        chat.save({"n": 1})
        self.clock.now = 2000
        head = chat.save({"n": 2})

        [record] = self.store.threads()

        assert record == chat.about
        assert (record.id, record.kind, record.owner) == ("chat", "agent", "me")
        assert (record.metadata, record.head) == ({"k": [1]}, head)
        assert (record.created_at, record.updated_at) == (1000, 2000)
        assert (record.forked_from, record.deleted_at) == (None, None)

    def test_threads_are_filtered(self) -> None:
        self.store.thread("a1", kind="agent", owner="me").save({})
        self.store.thread("a2", kind="agent", owner="you").save({})
        self.store.thread("b1", owner="me").save({})
        store = self.store

        assert names(store.threads(kind="agent")) == ["a2", "a1"]
        assert names(store.threads(owner="me")) == ["b1", "a1"]
        assert names(store.threads(prefix="a")) == ["a2", "a1"]
        assert names(store.threads(kind="agent", owner="me")) == ["a1"]
        assert names(store.threads(prefix="b", owner="me")) == ["b1"]
        assert names(store.threads(owner="nobody")) == []

    def test_a_prefix_is_plain_text(self) -> None:
        for name in ("100%", "100x", "a_b", "axb", "A", "a*", "ä1"):
            self.filled(1, name)

        assert names(self.store.threads(prefix="100%")) == ["100%"]
        assert names(self.store.threads(prefix="a_")) == ["a_b"]
        assert names(self.store.threads(prefix="a*")) == ["a*"]
        assert names(self.store.threads(prefix="ä")) == ["ä1"]
        assert names(self.store.threads(prefix="a")) == ["a*", "axb", "a_b"]

    def test_a_cursor_leads_to_the_next_page(self) -> None:
        for n in range(7):
            self.store.thread(f"{n}", metadata={"odd": n % 2}).save({})

        for metadata, expected in untyped((None, "6543210"), ({"odd": 1}, "531")):
            found: list[str] = []
            page = self.store.threads(limit=2, metadata=metadata)
            while page:
                found += names(page)
                if page.cursor is None:
                    break
                page = self.store.threads(limit=2, metadata=metadata, after=page.cursor)
            assert found == list(expected)

    def test_a_thread_saved_while_paging_shifts_nothing(self) -> None:
        for n in range(4):
            self.filled(1, f"{n}")
        page = self.store.threads(limit=2)
        self.filled(1, "new")

        assert names(self.store.threads(limit=2, after=page.cursor)) == ["1", "0"]

    def test_the_store_counts_what_is_there(self) -> None:
        chat = self.thread()
        chat.save({"text": "x" * 600})
        chat.save({"text": "x" * 600}, journal={"k": 1})
        chat.fork("fork")

        facts = self.store.stats()

        assert (facts.threads, facts.checkpoints, facts.segments) == (2, 2, 1)
        assert facts.journal_entries == 1
        assert facts.logical_bytes == 2 * 602
        records = 2 * 300  # at most, also if they are encrypted
        assert 0 < facts.stored_bytes <= 602 + self.segment_overhead + records
        assert facts.file_bytes > 0

    def test_small_states_take_bytes_too(self) -> None:
        chat = self.thread()
        chat.save({"step": 1})
        before = self.store.stats()

        chat.save({"step": 2})

        assert self.store.stats().stored_bytes > before.stored_bytes > 0


class NameTests(Cases):
    """A name is any text: data, never a path, a pattern or a statement."""

    def test_any_text_names_a_thread(self) -> None:
        for n, name in enumerate(HOSTILE):
            self.thread(name).save({"n": n})

        assert names(self.store.threads()) == HOSTILE[::-1]
        for n, name in enumerate(HOSTILE):
            assert self.thread(name).load() == {"n": n}
            assert name in names(self.store.threads(prefix=name))

    def test_any_text_names_a_thread_after_reopening(self) -> None:
        for n, name in enumerate(HOSTILE):
            self.thread(name).save({"n": n})

        store = self.reopen()

        assert [store.thread(name).load()["n"] for name in HOSTILE] == [
            *range(len(HOSTILE))
        ]

    def test_threads_of_any_name_are_forked_and_deleted(self) -> None:
        for n, name in enumerate(HOSTILE):
            self.thread(name).save({"name": name})
            self.thread(name).fork(f"fork {n}").save({})

        for count, name in enumerate(HOSTILE, 1):
            assert self.thread(name).delete() == 1
            assert self.store.stats().threads == 2 * len(HOSTILE) - count

    def test_any_text_is_an_owner_a_kind_a_label_and_a_tag(self) -> None:
        for n, name in enumerate(HOSTILE):
            thread = self.store.thread(f"{n}", kind=name, owner=name)
            thread.save({"n": n}, label=name, tags=["first", name], kind=name)

        for n, name in enumerate(HOSTILE):
            thread = self.thread(f"{n}")
            assert names(self.store.threads(kind=name)) == [f"{n}"]
            assert names(self.store.threads(owner=name)) == [f"{n}"]
            assert thread.find(label=name) == thread.find(tag=name) == thread.head
            assert thread.get().kind == name


class WeightTests(Cases):
    """Threads by the space that they and their forks take."""

    def test_the_heaviest_come_first_with_their_forks(self) -> None:
        self.thread("light").save({"n": 1})
        chat = self.thread()
        for n in range(5):
            chat.append(messages=[f"{n} {LONG}"])
        chat.fork("fork").save({"messages": [LONG * 9], "n": 1})

        heavy, light = self.store.heaviest()

        assert heavy.threads == ("chat", "fork")
        assert (heavy.checkpoints, light.checkpoints) == (6, 1)
        assert heavy.logical_bytes > heavy.stored_bytes > light.stored_bytes > 0
        assert list(heavy.values) == ["messages", "n"]
        assert light.values == {"n": 1}
        assert self.store.heaviest(1) == (heavy,)

    def test_nothing_takes_no_space(self) -> None:
        assert self.store.heaviest() == ()
        self.thread().save([LONG])
        assert list(self.store.heaviest(None)[0].values) == ["(root)"]
        self.thread().delete()
        assert self.store.heaviest() == ()
