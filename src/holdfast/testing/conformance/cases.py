"""Base classes, a clock and ids for the conformance suite and for our own tests."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from threading import Lock
from typing import Any, Generic, TypeVar, Unpack
from unittest import SkipTest

from holdfast._api.options import OpenOptions
from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._values.records import Checkpoint
from holdfast.agents import Agent
from holdfast.errors import Unsupported
from holdfast.messages import Message

LONG = "a value too long for the manifest " * 20


class Cases:
    """Opens stores for a test and closes them after it.

    A subclass implements `open_store`.
    """

    # True if a closed store can be opened again with its content. Set it to False for
    # stores such as ":memory:"; the tests that reopen are skipped.
    reopens = True
    # The bytes that are stored with every segment beside its own, for example the nonce
    # and the tag of an encrypting layer.
    segment_overhead = 0

    clock: FakeClock
    new_id: Callable[[], str]
    _opened: list[Store]

    def open_store(self, **options: Unpack[OpenOptions]) -> Store:
        """Open the store of this test: the same one at every call within a test."""
        raise NotImplementedError

    def setup_method(self) -> None:
        """Pytest calls it before every test."""
        self.clock = FakeClock()
        self.new_id = ids()
        self._opened = []

    def teardown_method(self) -> None:
        """Pytest calls it after every test."""
        for store in self._opened:
            store.close()

    def open(self, **options: Unpack[OpenOptions]) -> Store:
        """A store with the test's clock and ids, closed when the test is over."""
        defaults: OpenOptions = {
            "durability": "normal",
            "clock": self.clock,
            "new_id": self.new_id,
        }
        store = self.open_store(**(defaults | options))
        self._opened.append(store)
        return store

    def reopen(self, **options: Unpack[OpenOptions]) -> Store:
        """The store, closed and opened again."""
        self.must_reopen()
        for store in self._opened:
            store.close()
        self._opened.clear()
        return self.open(**options)

    def rival(self, **options: Unpack[OpenOptions]) -> Store:
        """A second `Store` on the same files, as another process would open it."""
        self.must_reopen()
        _ = self.store
        return self.open(**options)

    def must_reopen(self) -> None:
        """Skip the test if the store cannot be opened twice."""
        if not self.reopens:
            raise SkipTest("this store cannot be opened twice")

    def must_be_able(self, ability: str) -> None:
        """Skip the test if the backend does not have an ability."""
        if ability not in self.store.stats().abilities:
            raise SkipTest(f"this backend has no ability to {ability}")

    def compressed(self) -> Store:
        """A store that compresses; the test is skipped if the extra is missing."""
        try:
            return self.open(compress=True)
        except Unsupported as missing:
            raise SkipTest(str(missing)) from None

    @property
    def store(self) -> Store:
        """The first store of the test."""
        return self._opened[0] if self._opened else self.open()

    def thread(self, name: str = "chat") -> Thread:
        """A thread of the first store."""
        return self.store.thread(name)

    def filled(self, count: int, name: str = "chat") -> list[Checkpoint]:
        """Save to a thread ``count`` times; the checkpoints, oldest first.

        The n-th state is ``{"n": n}``.
        """
        thread = self.thread(name)
        return [thread.save({"n": n}) for n in range(1, count + 1)]


class AgentCases(Cases):
    """Makes an agent with conversations, and reads all that a restore brings back."""

    def busy_agent(self, owner: str | None = None) -> None:
        """The agent ``a`` with two conversations and seven messages."""
        self.store.agents.save(Agent(id="a", name="A", state={"text": LONG}))
        for id_, total in (("one", 4), ("two", 3)):
            messages = [Message.user(f"{n} {LONG}") for n in range(total - 1)]
            self.store.conversations.create(
                id_, agent="a", owner=owner, title=id_, messages=messages
            )
            self.store.conversations.add(id_, Message.assistant("answer"))

    def long(self) -> Message:
        """A new message."""
        return Message.user(f"{self.new_id()} {LONG}")

    def world(self) -> object:
        """All agents and conversations, as records."""
        agents = [self.store.agents.load(a.id) for a in self.store.agents.list()]
        for agent in agents:
            # They are listed by their last use, and a restore counts as one.
            agent.active_conversations = tuple(sorted(agent.active_conversations))
        talks = self.store.conversations.list(limit=None)
        return (
            {agent.id: agent for agent in agents},
            {talk.id: self.store.conversations.load(talk.id) for talk in talks},
            {
                talk.id: self.store.conversations.thread(talk.id).load()
                for talk in talks
            },
        )


def steps(checkpoints: Iterable[Checkpoint]) -> list[int]:
    """The steps of some checkpoints, in their order."""
    return [checkpoint.step for checkpoint in checkpoints]


def untyped(*values: Any) -> tuple[Any, ...]:
    """Arguments that a type checker would refuse."""
    return values


E = TypeVar("E", bound=BaseException)


class Raised(Generic[E]):
    """Holds the error once the block of `raises` is over."""

    error: E


@contextmanager
def raises(kind: type[E], code: str | None = None) -> Generator[Raised[E]]:
    """Expect the block to raise a ``kind``, and with a ``code`` one that carries it."""
    raised = Raised[E]()
    try:
        yield raised
    except kind as error:
        raised.error = error
    else:
        raise AssertionError(f"nothing was raised, where {kind.__name__} was due")
    found = getattr(raised.error, "code", None)
    assert code in (None, found), f"the code is {found!r}, not {code!r}"


MIDNIGHT = 1_700_006_400_000_000  # 2023-11-15 00:00 UTC, a Wednesday


class FakeClock:
    """A clock for `holdfast.open` that stands still until the test moves it.

    ``now`` is in microseconds UTC and can be set, to an earlier time as well.
    """

    def __init__(self, now: int = MIDNIGHT) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def advance(self, by: timedelta) -> None:
        """Go forward, or back if ``by`` is negative."""
        self.now += by // timedelta(microseconds=1)


def ids(prefix: str = "id-") -> Callable[[], str]:
    """A source of ids for `holdfast.open`: the same in every run, each one once."""
    numbers = count(1)
    lock = Lock()

    def new_id() -> str:
        with lock:
            return f"{prefix}{next(numbers):06d}"

    return new_id
