"""Delta channels, which are computed from many checkpoints: none is ever lost."""

import asyncio
import operator
import os
import random
from typing import Annotated, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

import holdfast
from adapters.langgraph.graphs import put, thread
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.backends import Layer, run
from inner.api import context_over
from inner.sqlite import SqliteBackend

delta = pytest.importorskip("langgraph.channels.delta", reason="new in LangGraph 1.2")

SEEDS = 200 if os.environ.get("HOLDFAST_THOROUGH") else 10


def extended(before, batches):
    return [*before, *(item for batch in batches for item in batch)]


class Deltas(TypedDict):
    seldom: Annotated[list[str], delta.DeltaChannel(extended, snapshot_frequency=4)]
    plain: Annotated[list[str], operator.add]


def growing():
    """A graph of which one channel is made of the writes of many checkpoints."""
    builder = StateGraph(Deltas)
    builder.add_node("note", lambda state: {"seldom": [str(len(state["seldom"]))]})
    builder.add_edge(START, "note")
    return builder


def grown(saver, name, turns):
    graph = growing().compile(checkpointer=saver)
    for n in range(turns):
        graph.invoke({"seldom": [f"in {n}"], "plain": [str(n)]}, thread(name))
    return graph


def ids(saver, config):
    return [item.checkpoint["id"] for item in saver.list(config)]


@pytest.mark.parametrize("turns", range(1, 7))
def test_pruning_keeps_what_delta_channels_are_made_of(saver, turns):
    graph = grown(saver, "t", turns)
    before = graph.get_state(thread("t")).values
    all_of_them = ids(saver, thread("t"))

    saver.prune(["t"])

    assert graph.get_state(thread("t")).values == before
    assert len(before["seldom"]) == 2 * turns
    assert len(ids(saver, thread("t"))) <= min(len(all_of_them), 13)
    state = graph.invoke({"seldom": ["more"], "plain": []}, thread("t"))
    assert state["seldom"][: 2 * turns] == before["seldom"]


def test_pruning_removes_what_no_delta_channel_needs(saver):
    grown(saver, "t", 12)
    before = ids(saver, thread("t"))

    saver.prune(["t"])

    after = ids(saver, thread("t"))
    assert after == before[: len(after)]
    assert len(after) < len(before) / 2


def test_a_copy_of_a_thread_has_its_delta_channels(saver):
    graph = grown(saver, "t", 3)
    before = graph.get_state(thread("t")).values

    saver.copy_thread("t", "copy")
    saver.delete_thread("t")

    assert graph.get_state(thread("copy")).values == before
    graph.invoke({"seldom": ["more"], "plain": []}, thread("copy"))
    assert graph.get_state(thread("copy")).values["seldom"][:6] == before["seldom"]


def test_deleting_a_run_keeps_what_delta_channels_of_others_need(saver):
    graph = growing().compile(checkpointer=saver)
    for n, run_id in enumerate(["first", "second"]):
        config = {**thread("t"), "metadata": {"run_id": run_id}}
        graph.invoke({"seldom": [f"in {n}"], "plain": []}, config)
    before = graph.get_state(thread("t")).values

    saver.delete_for_runs(["first"])

    assert graph.get_state(thread("t")).values == before


def test_a_fork_shares_what_the_delta_channels_before_it_are_made_of(
    quick, quick_store
):
    graph = grown(quick, "t", 3)
    before = graph.get_state(thread("t")).values

    quick_store.thread("t").fork("fork")

    assert graph.get_state(thread("fork")).values == before


def test_a_delta_channel_is_refused_rather_than_given_with_gaps(quick, quick_store):
    graph = grown(quick, "t", 3)
    thread_ = quick_store.thread("t")

    thread_.delete("@~2")

    with pytest.raises(holdfast.NotFound, match="channel 'seldom' of thread 't'"):
        graph.get_state(thread("t"))


def test_a_delta_channel_whose_writes_went_with_a_thread_is_refused(quick, quick_store):
    graph = grown(quick, "t", 1)
    quick_store.thread("t").fork("fork")
    quick.delete_thread("t")

    with pytest.raises(holdfast.NotFound, match="was removed"):
        graph.get_state(thread("fork"))


def test_a_fork_of_a_fork_has_what_was_written_where_the_first_began(
    quick, quick_store
):
    graph = grown(quick, "t", 2)
    quick_store.thread("t").fork("fork")
    more = {"seldom": ["more"], "plain": []}
    graph.invoke(more, thread("fork"), durability="exit")
    before = graph.get_state(thread("fork")).values

    quick_store.thread("fork").fork("again")

    assert graph.get_state(thread("again")).values == before


def test_a_delta_channel_whose_writes_went_with_a_fork_between_is_refused(
    quick, quick_store
):
    graph = grown(quick, "t", 2)
    quick_store.thread("t").fork("fork")
    graph.invoke({"seldom": ["more"], "plain": []}, thread("fork"))
    quick_store.thread("fork").fork("again")

    quick.delete_thread("fork")

    with pytest.raises(holdfast.NotFound, match="was removed"):
        graph.get_state(thread("again"))
    with pytest.raises(holdfast.NotFound, match="was removed"):
        quick.copy_thread("again", "copy")


def test_a_delta_channel_whose_parent_was_never_there_is_refused(quick):
    lost = thread("t", checkpoint_id="lost")
    counters = {"counters_since_delta_snapshot": {"d": (1, 1)}}
    config = put(quick, lost, {}, **counters)

    with pytest.raises(holdfast.NotFound, match="channel 'd'"):
        quick.get_delta_channel_history(config=config, channels=["d"])


def test_history_begins_at_the_nearest_value_and_goes_by_parents(saver):
    config = thread("t")
    for n, channels in enumerate([{"d": 0}, {}, {"d": 2}, {}, {}]):
        config = put(saver, config, channels)
        saver.put_writes(config, [("d", f"w{n}"), ("e", n)], "task")

    asked = {"config": config, "channels": ["d", "e", "f"]}
    found = saver.get_delta_channel_history(**asked)

    assert asyncio.run(saver.aget_delta_channel_history(**asked)) == found
    assert found["d"]["seed"] == 2
    assert [value for _, _, value in found["d"]["writes"]] == ["w2", "w3"]
    assert [value for _, _, value in found["e"]["writes"]] == [0, 1, 2, 3]
    assert "seed" not in found["e"]
    assert found["f"] == {"writes": []}


def test_parents_in_a_circle_are_followed_once(quick):
    config = put(quick, thread("t", checkpoint_id="b"), {}, checkpoint={"id": "a"})
    quick.put_writes(config, [("d", "on a")], "task")
    config = put(quick, config, {}, checkpoint={"id": "b"})
    quick.put_writes(config, [("d", "on b")], "task")

    found = quick.get_delta_channel_history(config=config, channels=["d"])

    assert found == {"d": {"writes": [("task", "d", "on a")]}}


class Requests(Layer):
    """Counts what is read."""

    count = 0

    async def read(self, keys):
        self.count += 1
        return await super().read(keys)

    async def scan(self, query):
        self.count += 1
        return await super().scan(query)

    async def segments(self, family, runs):
        self.count += 1
        return await super().segments(family, runs)


# So long that what is stored beside the channels does not fit into a manifest.
WIDE = {f"{'a long name ' * 9}{n}": str for n in range(3)}


def test_what_a_chain_begins_with_is_read_once():
    layer, counts = Requests(SqliteBackend(":memory:")), []
    run(layer.ready())
    with holdfast.Store(context_over(layer, {})) as store:
        graph = grown(HoldfastSaver(store), "t", 4)
        for _ in range(3):
            long = {"seldom": ["a long text " * 30], "plain": []}
            graph.invoke(long, thread("t"))
        for _ in range(3):
            layer.count = 0
            assert len(graph.get_state(thread("t")).values["seldom"]) == 14
            counts.append(layer.count)

    assert counts == [6, 5, 5]


def test_a_long_chain_is_read_in_as_few_requests_as_a_short_one():
    notes = Annotated[list[str], delta.DeltaChannel(extended)]
    builder = StateGraph(TypedDict("Wide", {"notes": notes, **WIDE}))
    builder.add_node("note", lambda _: {"notes": ["noted"]})
    builder.add_edge(START, "note")
    layer, counts = Requests(SqliteBackend(":memory:")), []
    run(layer.ready())
    with holdfast.Store(context_over(layer, {})) as store:
        graph = builder.compile(checkpointer=HoldfastSaver(store))
        for turns in (2, 20):
            for _ in range(turns):
                graph.invoke({"notes": ["in"], **dict.fromkeys(WIDE, "")}, thread("t"))
            layer.count = 0
            assert len(graph.get_state(thread("t")).values["notes"]) >= 2 * turns
            counts.append(layer.count)

    assert counts == [5, 5]


# --- everything at once ---------------------------------------------------------------


class Mixed(TypedDict):
    often: Annotated[list[str], delta.DeltaChannel(extended, snapshot_frequency=3)]
    never: Annotated[list[str], delta.DeltaChannel(extended, snapshot_frequency=99)]
    plain: Annotated[list[str], operator.add]


def mixed():
    """Two channels that grow side by side, and now and then a question."""

    def right(state):
        asks = len(state["never"]) % 4 == 3
        return {"never": [interrupt("?")]} if asks else {"often": ["right"]}

    builder = StateGraph(Mixed)
    builder.add_node("begin", lambda state: {"often": [str(len(state["often"]))]})
    builder.add_node("left", lambda state: {"never": [str(len(state["never"]))]})
    builder.add_node("right", right)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "left")
    builder.add_edge("begin", "right")
    return builder


class Kept:
    """A thread that goes on, and is pruned, copied and forked on the way."""

    def __init__(self, store, seed):
        self.random, self.store = random.Random(seed), store
        self.saver = HoldfastSaver(store)
        self.ours = mixed().compile(checkpointer=self.saver)
        self.theirs = mixed().compile(checkpointer=InMemorySaver())
        self.name = "t"

    def states(self):
        for step in range(14):
            ways = [self.run, self.run, self.run, self.prune, self.copy, self.fork]
            self.random.choice(ways)(step)
            yield [
                (state.values, state.next)
                for state in (
                    self.ours.get_state(thread(self.name)),
                    self.theirs.get_state(thread("t")),
                )
            ]

    def run(self, step):
        durability = self.random.choice(["sync", "async", "exit"])
        waits = self.theirs.get_state(thread("t")).interrupts
        new = {"often": [f"in {step}"], "never": ["in"], "plain": []}
        given = Command(resume=f"yes {step}") if waits else new
        self.ours.invoke(given, thread(self.name), durability=durability)
        self.theirs.invoke(given, thread("t"), durability=durability)

    def prune(self, _step):
        self.saver.prune([self.name])

    def copy(self, step):
        source, self.name = self.name, f"copy {step}"
        self.saver.copy_thread(source, self.name)
        self.saver.delete_thread(source)

    def fork(self, step):
        # A fork begins with an empty journal: interrupted tasks would start again.
        is_begun = self.store.thread(self.name).head is not None
        if is_begun and not self.theirs.get_state(thread("t")).tasks:
            source, self.name = self.name, f"fork {step}"
            self.store.thread(source).fork(self.name)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_is_done_to_threads_delta_channels_are_whole(seed):
    with holdfast.open(":memory:") as store:
        for ours, theirs in Kept(store, seed).states():
            assert ours == theirs
        assert store.verify().problems == ()
