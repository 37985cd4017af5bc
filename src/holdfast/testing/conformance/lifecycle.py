"""Opening a store, with options or for reading only, and closing it."""

from __future__ import annotations

from holdfast.errors import Closed, Conflict, NotFound, Unstorable, Unsupported
from holdfast.retention import Retention
from holdfast.testing.conformance.cases import LONG, Cases, raises, steps


class LifecycleTests(Cases):
    """A store can be opened, opened for reading only, and closed."""

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

    def test_a_timeout_may_be_as_long_as_one_likes(self) -> None:
        self.open(busy_timeout=1e9).thread("chat").save({})

        assert self.thread().step == 1

    def test_a_time_beyond_the_calendar_can_be_kept_and_shown(self) -> None:
        self.clock.now = 10**18

        saved = self.thread().save({})

        assert saved.saved_at == 10**18
        assert saved.id in repr(saved)


class CompressionTests(Cases):
    """``compress=True`` changes the bytes and nothing else."""

    def test_a_compressed_state_is_read_with_and_without_the_option(self) -> None:
        self.compressed()
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
        one = self.compressed().thread("chat")
        other = self.rival(compress=True).thread("chat")
        for n in range(100):
            one.append(m=[f"{n} one {LONG}"])
            other.append(m=[f"{n} other {LONG}"])

        expected = [f"{n} {who} {LONG}" for n in range(100) for who in ("one", "other")]
        assert one.load() == other.load() == {"m": expected}
