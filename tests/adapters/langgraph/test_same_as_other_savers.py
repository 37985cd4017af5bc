"""Our saver does the same as LangGraph's own ones.

Each seed is a series of steps. Graphs run, answer, branch and update a few threads with
every durability: what they say and what their histories hold is compared. Savers are
called at random: what they give back is compared.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

import holdfast
from adapters.langgraph import graphs
from adapters.langgraph.graphs import thread
from holdfast.adapters.langgraph import HoldfastSaver

SEEDS = 200 if os.environ.get("HOLDFAST_THOROUGH") else 10
STEPS = 14


class Played:
    """A series of steps, the same for every saver."""

    def __init__(self, saver: Any, seed: int) -> None:
        self._random = random.Random(seed)
        memory = True if seed % 2 else None
        self._graphs = {
            "chat": graphs.chat().compile(checkpointer=saver),
            "ask": graphs.asking().compile(checkpointer=saver),
            "spread": graphs.spreading().compile(checkpointer=saver),
            "nested": graphs.nested(memory).compile(checkpointer=saver),
            "again": graphs.nested(memory).compile(checkpointer=saver),
        }
        self.seen: list[Any] = []

    def play(self) -> list[Any]:
        for number in range(STEPS):
            step = self._random.choice([self._run, self._run, self._branch])
            name = self._random.choice([*self._graphs])
            durability = self._random.choice(["sync", "async", "exit"])
            self.seen.append(step(name, str(number), durability))
        for name, graph in self._graphs.items():
            self.seen += map(told, graph.get_state_history(thread(name)))
        return self.seen

    def _run(self, name: str, text: str, durability: str) -> Any:
        """Answer a thread that asks, or give it something new."""
        graph, config = self._graphs[name], thread(name)
        waits = graph.get_state(config).interrupts
        given = Command(resume=text) if waits else said(name, text)
        return values(graph.invoke(given, config, durability=durability))

    def _branch(self, name: str, text: str, durability: str) -> Any:
        """Go on from any checkpoint: again, with something new, or with an update."""
        graph = self._graphs[name]
        history = list(graph.get_state_history(thread(name)))
        if not history:
            return None
        config = self._random.choice(history).config
        way = self._random.choice(["again", "anew", "update"])
        if way == "update":
            node = min(graph.nodes.keys() - {"__start__"})
            graph.update_state(config, said(name, text), as_node=node)
            return values(graph.get_state(thread(name)).values)
        given = None if way == "again" else said(name, text)
        return values(graph.invoke(given, config, durability=durability))


def said(name: str, text: str) -> Any:
    return graphs.say(text) if name == "chat" else {"log": [text]}


def values(state: Any) -> Any:
    """A state without ids, which are always new."""
    found = {name: value for name, value in state.items() if name != "__interrupt__"}
    if "messages" in found:
        found["messages"] = graphs.texts(found)
    return found


def told(state: Any) -> Any:
    about = state.metadata["source"], state.metadata["step"]
    waits = [interrupt.value for interrupt in state.interrupts]
    return values(state.values), state.next, about, waits, len(state.tasks)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_to_threads_graphs_do_the_same(seed):
    expected = Played(InMemorySaver(), seed).play()

    with holdfast.open(":memory:") as store:
        assert Played(HoldfastSaver(store), seed).play() == expected
        assert store.verify().problems == ()


def test_a_few_series_do_the_same_on_every_backend(place):
    url, options = place
    expected = [Played(InMemorySaver(), seed).play() for seed in (0, 1)]

    for seed, wanted in enumerate(expected):
        with holdfast.open(url, **options) as store:
            saver = HoldfastSaver(store)
            assert Played(saver, seed).play() == wanted
            for name in ("chat", "ask", "spread", "nested", "again"):
                saver.delete_thread(name)


# --- calls of a saver -----------------------------------------------------------------

CHANNELS = ("m", "n", "o", "__start__", "__checkpoint__")
MARKS = ("__error__", "__interrupt__", "__resume__")


class Called:
    """A series of calls, the same for two savers."""

    def __init__(self, ours: Any, theirs: Any, seed: int) -> None:
        self._random = random.Random(seed)
        self._savers = ours, theirs
        self._known: dict[tuple[str, str], list[Any]] = {}

    def call(self) -> Iterator[list[Any]]:
        """What each call gave back, here and there."""
        for step in range(3 * STEPS):
            place = self._random.choice("ab"), self._random.choice(["", "", "inner"])
            known = self._known.setdefault(place, [])
            calls = [self._put, self._write, self._write, self._get, self._list]
            call = self._random.choice(calls) if known else self._put
            yield call(place, known, step)

    def _both(self, call: Callable[[Any], Any]) -> list[Any]:
        return [call(saver) for saver in self._savers]

    def _put(self, place: Any, known: list[Any], step: int) -> list[Any]:
        parent = self._random.choice([*known[:1], *known[-1:], None])
        checkpoint, changed = self._grown(parent, step)
        about = {"source": "loop", "step": step, "who": self._random.choice("xy")}
        known.append(checkpoint)
        config = config_of(place, parent)
        return self._both(lambda saver: saver.put(config, checkpoint, about, changed))

    def _grown(self, parent: Any, step: int) -> Any:
        found = {**(parent or {}), **empty_checkpoint(), "id": str(uuid6(clock_seq=0))}
        values = dict(parent["channel_values"]) if parent else {}
        versions = dict(parent["channel_versions"]) if parent else {}
        for name in self._random.sample(CHANNELS, 2):
            versions[name] = versions.get(name, 0) + 1
            before = values.pop(name, None) or []
            if self._random.random() < 0.8:
                values[name] = [*before, f"{step}" * self._random.choice([1, 300])]
        changed = {
            name: v
            for name, v in versions.items()
            if parent is None or parent["channel_versions"].get(name) != v
        }
        found |= {"channel_values": values, "channel_versions": versions}
        found["versions_seen"] = {"node": dict(versions)}
        return found, changed

    def _write(self, place: Any, known: list[Any], step: int) -> list[Any]:
        config = config_of(place, self._random.choice(known[-2:]))
        names = self._random.sample([*CHANNELS, *MARKS], self._random.randrange(1, 5))
        writes, task = [(name, step) for name in names], self._random.choice("tu")
        return self._both(lambda saver: saver.put_writes(config, writes, task))

    def _get(self, place: Any, known: list[Any], _step: int) -> list[Any]:
        config = config_of(place, self._random.choice([None, *known]))
        return self._both(lambda saver: contents(saver.get_tuple(config)))

    def _list(self, place: Any, known: list[Any], _step: int) -> list[Any]:
        asked = {
            "filter": self._random.choice([None, {"who": "x"}]),
            "before": self._random.choice([None, config_of(place, known[-1])]),
            "limit": self._random.choice([None, 2]),
        }
        return self._both(
            lambda saver: [*map(contents, saver.list(config_of(place, None), **asked))]
        )


def config_of(place: tuple[str, str], checkpoint: Any) -> Any:
    name, namespace = place
    config = thread(name, checkpoint_ns=namespace)
    if checkpoint is not None:
        config["configurable"]["checkpoint_id"] = checkpoint["id"]
    return config


def contents(found: Any) -> Any:
    parent = found.parent_config and found.parent_config["configurable"]
    about = found.checkpoint, found.metadata, found.pending_writes
    return found.config["configurable"], parent, *about


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_a_saver_is_asked_it_does_the_same(seed):
    with (
        SqliteSaver.from_conn_string(":memory:") as theirs,
        holdfast.open(":memory:") as store,
    ):
        for ours, wanted in Called(HoldfastSaver(store), theirs, seed).call():
            assert ours == wanted
        assert store.verify().problems == ()
