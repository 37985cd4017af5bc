"""The feed of changes of a whole store."""

from __future__ import annotations

import threading
import time

from holdfast._values.records import Change
from holdfast.retention import Retention
from holdfast.testing.conformance.cases import Cases


class FeedTests(Cases):
    """The feed lists every change, in the order of the commits."""

    def test_changes_come_in_the_order_of_the_commits(self) -> None:
        saved = [self.thread(name).save({}) for name in "abac"]

        changes = self.store.changes()

        assert [(c.kind, c.thread, c.subject) for c in changes] == [
            ("save", s.thread, s.id) for s in saved
        ]
        assert [c.seq for c in changes] == [s.seq for s in saved]

    def test_every_kind_of_change_is_in_the_feed(self) -> None:
        first, second = self.filled(2)
        chat = self.thread()
        chat.rewind(first)
        chat.undo()
        chat.redo()
        chat.label("x", first)
        chat.describe(owner="me")
        chat.record("key", 1)
        chat.fork("fork", at=second)
        before = [change.kind for change in self.store.changes()]
        chat.rewind(second)
        chat.delete(first)
        self.thread("fork").delete()
        after = [change.kind for change in self.store.changes()]

        assert before == [
            "save",
            "save",
            "rewind",
            "undo",
            "redo",
            "mark",
            "describe",
            "record",
            "fork",
        ]
        assert after[-2:] == ["prune", "delete"]

    def test_a_change_says_what_when_and_where(self) -> None:
        self.clock.now = 1000
        saved = self.thread().save({})
        self.clock.now = 2000
        self.thread().record("key", 1)
        self.clock.now = 3000
        self.thread().fork("fork")

        reported = [(c.kind, c.thread, c.subject, c.at) for c in self.store.changes()]

        assert reported == [
            ("save", "chat", saved.id, 1000),
            ("record", "chat", "key", 2000),
            ("fork", "fork", saved.id, 3000),
        ]

    def test_the_feed_goes_on_from_its_cursor(self) -> None:
        self.filled(3)
        chat = self.thread()
        cursor = self.store.changes().cursor
        assert cursor is not None
        fourth = chat.save({})

        [change] = self.store.changes(after=cursor)

        assert change.subject == fourth.id

    def test_the_feed_comes_in_pages(self) -> None:
        self.filled(7)
        found: list[Change] = []
        page = self.store.changes(limit=3)
        while page:
            found.extend(page)
            assert page.cursor is not None
            page = self.store.changes(after=page.cursor, limit=3)

        assert found == list(self.store.changes())
        assert len(found) == 7

    def test_an_empty_page_has_a_cursor(self) -> None:
        assert self.store.changes().cursor == 0
        cursor = self.filled(1)[0].seq

        page = self.store.changes(after=cursor)

        assert (len(page), page.cursor) == (0, cursor)

    def test_no_change_comes_twice(self) -> None:
        cursor = 0
        seen: list[int] = []
        for n in range(20):
            chat = self.thread(f"{n % 3}")
            chat.save({}, journal={"a": 1, "b": 2})
            chat.record_all({f"{n} x": 1, f"{n} y": 2})
            page = self.store.changes(after=cursor)
            assert page.cursor is not None
            cursor = page.cursor
            seen += [change.seq for change in page]

        assert seen == sorted(set(seen))
        assert len(seen) == 100

    def test_the_sequence_goes_on_after_the_newest_was_removed(self) -> None:
        first, second = self.filled(2)
        chat = self.thread()
        chat.rewind(first, hard=True)
        cursor = self.store.changes().cursor
        assert cursor is not None
        assert cursor > second.seq

        third = chat.save({})

        assert third.seq > cursor
        assert [c.subject for c in self.store.changes(after=cursor)] == [third.id]

    def test_the_sequence_goes_on_after_everything_was_removed(self) -> None:
        for n in range(3):
            self.filled(1, f"{n}")
        cursor = self.store.changes().cursor
        self.store.delete("0", "1", "2")
        self.clock.now += 366 * 24 * 3600 * 1_000_000
        self.store.prune(Retention())
        assert cursor is not None

        saved = self.thread("new").save({})

        assert saved.seq > cursor + 3

    def test_waiting_for_nothing_ends_with_the_timeout(self) -> None:
        begun = time.monotonic()

        page = self.store.changes(timeout=0.25)

        assert len(page) == 0
        assert time.monotonic() - begun >= 0.25

    def test_waiting_ends_with_the_first_change(self) -> None:
        chat = self.thread()
        saver = threading.Thread(target=chat.save, args=({"n": 1},))
        saver.start()

        page = self.store.changes(timeout=60)

        saver.join()
        assert [change.kind for change in page] == ["save"]

    def test_changes_of_another_process_are_in_the_feed(self) -> None:
        rival = self.rival()
        saved = rival.thread("theirs").save({})

        [change] = self.store.changes(timeout=60)

        assert change.subject == saved.id
