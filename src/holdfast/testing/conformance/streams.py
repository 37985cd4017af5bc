"""Streams: events in one order for all processes that share a store."""

from __future__ import annotations

import threading
from datetime import timedelta

from holdfast._api.store import Store
from holdfast.errors import Conflict, FormatMismatch, NotFound, Unstorable
from holdfast.streams import Event
from holdfast.testing.conformance.cases import LONG, Cases, raises, untyped


class StreamTests(Cases):
    """Events are appended, read after a cursor, waited for and trimmed."""

    def test_events_are_read_after_a_cursor_in_their_order(self) -> None:
        stream = self.store.stream("log", owner="ann")
        assert (stream.events(), stream.last) == ([], None)

        # Small ones stand in the manifest, large ones in segments of their own.
        values = [{"n": n, "text": LONG if n > 8 else "short"} for n in range(12)]
        cursors = [stream.append(value) for value in values]

        assert cursors == sorted(set(cursors))
        assert stream.last == cursors[-1]
        rival = self.rival().stream("log")
        for place in range(12):
            found = rival.events(cursors[place], limit=5)
            assert numbers(found) == list(range(place + 1, 12))[:5]
        whole = stream.events(limit=None)
        assert [event.value for event in whole] == values
        assert [event.cursor for event in whole] == cursors
        about = self.thread("stream:log").about
        assert about is not None
        assert (about.kind, about.owner) == ("stream", "ann")

    def test_an_event_says_when_it_was_appended_and_under_which_key(self) -> None:
        stream = self.store.stream("log")
        cursor = stream.append({1, 2}, key="a")

        [event] = stream.events()

        at = self.clock.now
        assert event == Event(cursor=cursor, value={1, 2}, at=at, key="a")
        assert event.time.timestamp() * 1_000_000 == at

    def test_a_key_appends_once(self) -> None:
        stream, rival = self.store.stream("log"), self.rival().stream("log")
        first = stream.append({"n": 0}, key="a")
        second = rival.append({"n": 1}, key="b")

        assert rival.append({"n": 2}, key="a") == first
        assert stream.append({"n": 3}, key="b") == second
        assert numbers(stream.events()) == [0, 1]

    def test_rivals_append_to_one_order_without_a_gap(self) -> None:
        stores = [self.store, self.rival()]
        streams = [store.stream("log") for store in stores]
        cursors = [streams[n % 2].append({"n": n, "text": LONG}) for n in range(8)]

        for stream in streams:
            assert [event.cursor for event in stream.events()] == cursors
            assert numbers(stream.events()) == list(range(8))

    def test_what_a_rival_appends_ends_the_waiting(self) -> None:
        stream, rival = self.store.stream("log"), self.rival()
        assert stream.wait(timeout=0.0) == []
        cursor = stream.append({"n": 0})
        assert stream.wait(cursor, timeout=0.05) == []
        writer = threading.Timer(0.1, append_later, [rival])
        writer.start()

        found = stream.wait(cursor, timeout=30.0)

        writer.join()
        assert numbers(found) == [1]

    def test_a_trim_removes_the_oldest_events_for_good(self) -> None:
        stream = self.store.stream("log")
        cursors = [stream.append({"n": n, "text": LONG}, key=f"{n}") for n in range(10)]
        self.clock.advance(timedelta(hours=1))
        cursors += [stream.append({"n": n, "text": LONG}) for n in range(10, 13)]

        assert stream.trim(before=cursors[4]) == 4
        assert numbers(stream.events()) == list(range(4, 13))
        assert numbers(stream.events(cursors[3])) == list(range(4, 13))
        assert stream.trim(older=timedelta(minutes=30)) == 6
        assert numbers(stream.events()) == [10, 11, 12]
        assert stream.trim(last=1) == 2

        assert numbers(self.rival().stream("log").events()) == [12]
        for cursor in cursors[:11]:
            with raises(NotFound, "events_gone"):
                stream.events(cursor)
        assert stream.events(cursors[12]) == []
        facts = self.store.stats()
        assert (facts.checkpoints, facts.segments, facts.journal_entries) == (1, 1, 0)
        assert self.store.verify().ok

    def test_a_trimmed_stream_goes_on_with_new_cursors(self) -> None:
        stream = self.store.stream("log")
        cursors = [stream.append({"n": n}, key="a" if n else None) for n in range(2)]

        assert stream.trim(last=0) == 2
        assert (stream.events(), stream.last) == ([], cursors[-1])
        assert stream.trim(last=0) == 0
        again = stream.append({"n": 2}, key="a")

        assert again > cursors[-1]
        assert numbers(stream.events(cursors[-1])) == [2]
        assert self.store.verify().ok

    def test_a_trim_cuts_between_events_of_one_segment(self) -> None:
        stream = self.store.stream("log")
        # Events that outgrow the manifest are written as one list, tiny ones together.
        cursors = [stream.append({"n": n}) for n in range(20)]
        rival = self.rival().stream("log")

        for place in (1, 2, 5, 13):
            stream.trim(before=cursors[place])
            stream.append({"n": 20})
            found = numbers(rival.events())
            assert found[: 20 - place] == list(range(place, 20))
            assert self.store.verify().ok

    def test_a_deleted_stream_refuses_late_writers(self) -> None:
        stream = self.store.stream("log")
        cursor = stream.append({"n": 0})

        assert stream.delete()
        assert not stream.delete()

        with raises(Conflict, "thread_deleted"):
            self.rival().stream("log").append({"n": 1})
        with raises(NotFound, "events_gone"):
            stream.events(cursor)
        assert stream.events() == []
        self.clock.advance(timedelta(seconds=1))
        assert self.store.stream("log", anew=True).append({"n": 2}) > cursor
        with raises(NotFound, "events_gone"):
            stream.events(cursor)
        assert numbers(stream.events()) == [2]

    def test_an_event_is_part_of_a_transaction(self) -> None:
        stream = self.store.stream("log")
        with self.store.transaction() as tx:
            tx.thread("task").save({"n": 1})
            tx.stream("log", owner="ann").append({"n": 1}, key="a")
        with raises(Conflict, "entry_taken"), self.store.transaction() as tx:
            tx.thread("task").save({"n": 2})
            tx.stream("log").append({"n": 2}, key="a")

        self.rival().stream("log").append({"n": 2})

        with self.store.transaction() as tx:
            tx.thread("task").save({"n": 3})
            tx.stream("log").append({"n": 3})
        assert (self.thread("task").load(), self.thread("task").step) == ({"n": 3}, 2)
        assert numbers(stream.events()) == [1, 2, 3]

    def test_what_no_stream_can_have_is_refused(self) -> None:
        stream = self.store.stream("log")
        cursor = stream.append("one")
        other = self.store.stream("other").append("one")
        self.clock.advance(timedelta(seconds=1))
        later = self.store.stream("later").append("one")
        assert cursor == other  # cursors are those of one stream

        with raises(NotFound, "event_unknown"):
            stream.events(later)
        for wrong in untyped(1, "", "x", cursor.upper() + "Z"):
            with raises(Unstorable):
                stream.events(wrong)
        with raises(Unstorable):
            stream.append(untyped(object())[0])
        for rule in untyped({}, {"last": 1, "before": cursor}, {"older": 1}):
            with raises(Unstorable):
                stream.trim(**rule)
        self.thread("stream:plain").save({"n": 1})
        with raises(FormatMismatch):
            self.store.stream("plain").append(1)
        with raises(FormatMismatch):
            self.store.stream("plain").events()


def numbers(events: list[Event]) -> list[int]:
    """The numbers in the values of some events."""
    return [event.value["n"] for event in events]


def append_later(store: Store) -> None:
    """Append from another thread."""
    store.stream("log").append({"n": 1})
