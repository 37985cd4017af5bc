"""What every group of the conformance suite works with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Unpack
from unittest import SkipTest

from holdfast._api.options import OpenOptions
from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._values.records import Checkpoint
from holdfast.agents import Agent
from holdfast.errors import Unsupported
from holdfast.messages import Message
from holdfast.testing._sources import FakeClock, ids

LONG = "a value too long for the manifest " * 20


class Cases:
    """Opens stores for a test and closes them after it.

    A subclass says how, with `open_store`.
    """

    # Whether a place that was closed can be opened again with what was saved in it.
    # The tests that need it are skipped where it cannot, as with ":memory:".
    reopens = True

    clock: FakeClock
    new_id: Callable[[], str]
    _opened: list[Store]

    def open_store(self, **options: Unpack[OpenOptions]) -> Store:
        """Open the place of this test, the same one at every call within a test."""
        raise NotImplementedError

    def setup_method(self) -> None:
        """Called by pytest before every test."""
        self.clock = FakeClock()
        self.new_id = ids()
        self._opened = []

    def teardown_method(self) -> None:
        """Called by pytest after every test."""
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
        """What was saved so far, opened anew; every older store is closed."""
        self.must_reopen()
        for store in self._opened:
            store.close()
        self._opened.clear()
        return self.open(**options)

    def rival(self, **options: Unpack[OpenOptions]) -> Store:
        """A second store on the same place, as another process would have it."""
        self.must_reopen()
        _ = self.store
        return self.open(**options)

    def must_reopen(self) -> None:
        """Skip the test where a place has only one store."""
        if not self.reopens:
            raise SkipTest("this place cannot be opened twice")

    def must_be_able(self, ability: str) -> None:
        """Skip the test where the backend does not have an ability."""
        if ability not in self.store.stats().abilities:
            raise SkipTest(f"this backend has no ability to {ability}")

    def compressed(self) -> Store:
        """A store that compresses; the test is skipped where nothing can."""
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
        """The checkpoints of a thread that was saved to so many times, oldest first.

        The state of the n-th is ``{"n": n}``.
        """
        thread = self.thread(name)
        return [thread.save({"n": n}) for n in range(1, count + 1)]


class AgentCases(Cases):
    """Has an agent with conversations, and a view of all that can be restored."""

    def busy_agent(self, owner: str | None = None) -> None:
        """The agent ``a`` with two conversations and seven messages."""
        self.store.agents.save(Agent(id="a", name="A", state={"text": LONG}))
        for id_, count in (("one", 4), ("two", 3)):
            messages = [Message.user(f"{n} {LONG}") for n in range(count - 1)]
            self.store.conversations.create(
                id_, agent="a", owner=owner, title=id_, messages=messages
            )
            self.store.conversations.add(id_, Message.assistant("answer"))

    def long(self) -> Message:
        """One more message."""
        return Message.user(f"{self.new_id()} {LONG}")

    def world(self) -> object:
        """All agents and conversations, as records."""
        agents = [self.store.agents.load(a.id) for a in self.store.agents.list()]
        for agent in agents:
            # In the order of their last use, which going back in time is.
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


def alike(one: object, other: object) -> bool:
    """Whether two values are the same down to the types of all parts, NaN included."""
    return repr(one) == repr(other)


# Ids that would be trouble as paths, queries, patterns or references.
HOSTILE = (
    "../../etc/passwd",
    "/absolute",
    "a/b",
    "a\\b",
    "..",
    "foo",
    "foo.json",
    "CON",
    "a:b",
    "agent:a",
    "pin:a",
    " ",
    "a\nb",
    "'; drop table thread; --",
    "%",
    "*",
    "@",
    "label:x",
    "-rf",
    "\u00e9",
    "e\u0301",
    "\U0001f3f4\u200d\u2620\ufe0f",
)


def untyped(*values: Any) -> tuple[Any, ...]:
    """Arguments that a type checker would not let through."""
    return values
