"""Automatic checkpoints by time: one loop, bounded, and every error is reported."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from queue import Queue
from threading import enumerate as living_threads

from holdfast.agents import Agent, AgentCheckpoint
from holdfast.errors import NotFound, Unstorable
from holdfast.messages import Message
from holdfast.testing._cases import Cases, untyped
from holdfast.testing._raises import raises

SOON = 0.001
NEVER = timedelta(days=365)
PATIENCE = 120.0  # seconds; a test that passes needs almost none of them


def loops() -> int:
    """How many loops run in threads; those of the async API are tasks."""
    return sum(thread.name == "holdfast-autosave" for thread in living_threads())


class AutosaveTests(Cases):
    """A loop that takes a checkpoint if anything changed."""

    def agent(self) -> None:
        """The agent ``a`` with one conversation."""
        self.store.agents.save(Agent(id="a"))
        self.store.conversations.create("c", agent="a")

    def change(self) -> None:
        """Something to take a checkpoint of."""
        self.store.conversations.add("c", Message.user("x"))

    def taken(self) -> list[AgentCheckpoint]:
        """The automatic checkpoints, newest first."""
        return list(self.store.agents.checkpoints("a", kind="automatic", limit=None))

    def wait_for_checkpoint(self, after: int) -> int:
        """Wait until one more is taken; returns how far the feed was read."""
        while True:
            page = self.store.changes(after, timeout=PATIENCE)
            assert page, "no checkpoint was taken"
            assert page.cursor is not None
            after = page.cursor
            if any(change.thread == "checkpoints:a" for change in page):
                return after

    def test_checkpoints_are_taken_while_autosave_runs(self) -> None:
        self.agent()
        seen = self.store.changes().cursor or 0

        with self.store.agents.autosave("a", every=SOON):
            for _ in range(3):
                seen = self.wait_for_checkpoint(seen)
                self.change()

        taken = self.taken()
        assert 3 <= len(taken) <= 4
        assert {checkpoint.kind for checkpoint in taken} == {"automatic"}
        assert taken[0].messages == 3

    def test_stopping_takes_a_last_one_and_waits_for_it(self) -> None:
        self.agent()
        saving = self.store.agents.autosave("a", every=NEVER)
        saving.start()
        self.change()

        saving.stop()

        [last] = self.taken()
        assert last.messages == 1
        saving.stop()
        assert self.taken() == [last]

    def test_nothing_is_saved_while_nothing_changed(self) -> None:
        self.agent()
        saving = self.store.agents.autosave("a", every=NEVER)

        for _ in range(3):
            saving.take()
        assert len(self.taken()) == 1
        self.change()
        saving.take()
        saving.take()
        assert len(self.taken()) == 2
        self.store.agents.checkpoint("a")
        saving.take()
        assert len(self.taken()) == 2

    def test_starting_twice_is_one_loop(self) -> None:
        self.agent()
        saving = self.store.agents.autosave("a", every=NEVER)

        with ThreadPoolExecutor(4) as pool:
            for starting in [pool.submit(saving.start) for _ in range(8)]:
                starting.result()

        assert loops() <= 1
        saving.stop()
        assert loops() == 0
        assert len(self.taken()) == 1

    def test_autosave_can_be_started_again_after_a_stop(self) -> None:
        self.agent()
        saving = self.store.agents.autosave("a", every=SOON)

        for n in range(1, 6):
            saving.start()
            assert loops() <= 1
            self.change()
            saving.stop()
            assert loops() == 0
            assert self.taken()[0].messages == n

    def test_their_number_is_bounded_and_the_others_stay(self) -> None:
        self.agent()
        mine = self.store.agents.checkpoint("a", "mine")
        saving = self.store.agents.autosave("a", every=NEVER, keep=3)

        for _ in range(8):
            self.change()
            saving.take()

        assert [checkpoint.messages for checkpoint in self.taken()] == [8, 7, 6]
        assert mine in self.store.agents.checkpoints("a")
        assert self.store.verify()

    def test_every_agent_is_saved_once(self) -> None:
        for id_ in ("a", "b"):
            self.store.agents.save(Agent(id=id_))

        with self.store.agents.autosave("a", "b", "a", every=NEVER):
            pass

        for id_ in ("a", "b"):
            assert len(self.store.agents.checkpoints(id_)) == 1

    def test_an_error_reaches_the_hook_and_the_loop_goes_on(self) -> None:
        self.agent()
        errors: Queue[tuple[str, Exception]] = Queue()

        def note(agent: str, error: Exception) -> None:
            errors.put((agent, error))

        with self.store.agents.autosave("ghost", "a", every=SOON, on_error=note):
            for _ in range(3):
                agent, error = errors.get(timeout=PATIENCE)
                assert agent == "ghost"
                assert isinstance(error, NotFound)
            self.store.agents.save(Agent(id="ghost"))

        assert len(self.taken()) == 1
        assert len(self.store.agents.checkpoints("ghost")) == 1

    def test_without_a_hook_stopping_raises_what_went_wrong(self) -> None:
        self.agent()
        saving = self.store.agents.autosave("ghost", "a", every=NEVER)
        saving.start()

        with raises(NotFound):
            saving.stop()

        assert len(self.taken()) == 1
        saving.stop()
        saving = self.store.agents.autosave("ghost", "phantom", every=NEVER)
        with raises(NotFound) as first, saving:
            pass
        assert first.error.thread == "agent:ghost"

    def test_a_hook_that_fails_does_not_end_the_loop(self) -> None:
        self.agent()
        called: Queue[str] = Queue()
        errors: Iterator[Exception] = iter([ZeroDivisionError()])

        def fail(agent: str, _: Exception) -> None:
            called.put(agent)
            raise next(errors, ValueError())

        saving = self.store.agents.autosave("ghost", "a", every=SOON, on_error=fail)
        saving.start()
        for _ in range(3):
            called.get(timeout=PATIENCE)
        self.change()

        with raises(ZeroDivisionError):
            saving.stop()
        assert self.taken()[0].messages == 1

    def test_closing_the_store_takes_the_last_ones_and_ends_all_loops(self) -> None:
        self.agent()
        for saving in (
            self.store.agents.autosave("ghost", every=NEVER),
            self.store.agents.autosave("a", every=NEVER),
            self.store.agents.autosave("phantom", every=NEVER),
        ):
            saving.start()

        with raises(NotFound):
            self.store.close()

        assert loops() == 0
        self.reopen()
        assert len(self.taken()) == 1

    def test_what_makes_no_sense_is_not_started(self) -> None:
        agents = self.store.agents
        for wrong in untyped(
            0, -1, 0.0, timedelta(0), timedelta(-1), float("nan"), True
        ):
            with raises(Unstorable):
                agents.autosave("a", every=wrong)
        for wrong in untyped(0, -1, 1.5, True):
            with raises(Unstorable):
                agents.autosave("a", keep=wrong)
        with raises(Unstorable):
            agents.autosave()

    def test_an_interval_may_be_as_long_as_one_likes(self) -> None:
        self.agent()

        def stopped(saving) -> None:
            saving.start()
            saving.stop()

        for long in (timedelta.max, 1e300, float("inf")):
            self.change()
            stopped(self.store.agents.autosave("a", every=long))

        assert [checkpoint.messages for checkpoint in self.taken()] == [3, 2, 1]
