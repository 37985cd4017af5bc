"""Pruning, counting and checking a store: rivals, threads without a save, leftovers."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

import holdfast
from holdfast import Agent, Conflict, Retention, Store
from holdfast.backends import Layer
from holdfast.testing import raises
from support.samples import LONG
from support.stores import backend_of


class Outpaced(Layer):
    """A layer that lets a rival act before each of the first few prunes."""

    def __init__(self, backend, rivals):
        super().__init__(backend)
        self.rivals = rivals

    async def prune(self, plan):
        if self.rivals and not plan.dry_run:
            self.rivals.pop()()
        return await self.backend.prune(plan)


def _outpaced(store, rivals):
    layer = Outpaced(backend_of(store), rivals)
    return Store(replace(store.runner.context, backend=layer))


def _fill(store):
    for name in ("a", "b"):
        for n in range(4):
            store.thread(name).append(log=[n])


@pytest.mark.parametrize("at_most", [None, 1.0])
def test_a_store_that_others_keep_pruning_is_pruned_in_parts(at_most, memory):
    _fill(memory)
    rivals = [
        lambda: memory.thread("a").delete("@~1"),
        lambda: memory.thread("b").delete("@~1"),
    ]

    pruned = _outpaced(memory, rivals).prune(Retention(last=1, at_most=at_most))

    assert rivals == []
    assert pruned.checkpoints == 4
    for name in ("a", "b"):
        assert len(memory.thread(name).history()) == 1
        assert memory.thread(name).load() == {"log": [0, 1, 2, 3]}
    assert memory.verify().ok


@pytest.mark.parametrize("at_most", [None, 0.9])
def test_a_part_that_others_keep_pruning_is_pruned_and_nothing_else(at_most, memory):
    _fill(memory)
    for n in range(4):
        memory.thread("mine", owner="ann").append(log=[n])
    rivals = [lambda: memory.thread("mine").delete("@~1")] * 2
    policy = Retention(last=1, at_most=at_most)

    pruned = _outpaced(memory, rivals).prune(policy, owner="ann")

    assert (rivals, pruned.checkpoints) == ([], 1)
    assert [memory.thread(name).count() for name in ("a", "b", "mine")] == [4, 4, 1]


def test_a_thread_that_is_used_while_idle_ones_are_pruned_stays(memory, clock):
    _fill(memory)
    memory.thread("idle").save({"n": 1})
    clock.now += 3_600_000_000
    rivals = [
        lambda: memory.thread("a").append(log=[4]),
        lambda: memory.thread("b").append(log=[4]),
    ]

    pruned = _outpaced(memory, rivals).prune(Retention(idle=timedelta(minutes=1)))

    assert rivals == []
    assert pruned.threads == 1
    assert {thread.id for thread in memory.threads()} == {"a", "b"}
    assert memory.verify().ok


def test_a_conflict_that_is_no_race_is_not_tried_in_parts(memory):
    _fill(memory)

    with raises(Conflict, "too_much"):
        memory.prune(Retention(last=1, at_most=0.1))

    assert len(memory.thread("a").history()) == 4


def test_a_thread_that_was_never_saved_is_not_among_the_heaviest(store):
    store.thread("saved").save({"text": LONG})
    store.thread("saved").fork("fork")
    store.thread("only recorded").record("call", 1)

    [heavy] = store.heaviest()

    assert heavy.threads == ("saved", "fork")
    assert heavy.values == {"text": 2 * (len(LONG) + 2)}


def test_the_heaviest_are_named_without_what_checkpoints_of_agents_keep(store):
    store.agents.save(Agent(id="a", name="A"))
    store.conversations.create("talk", agent="a")
    store.agents.checkpoint("a", "before")

    names = {name for one in store.heaviest() for name in one.threads}
    assert names == {"agent:a", "conversation:talk", "checkpoints:a"}

    store.conversations.delete("talk")
    [left] = {name for one in store.heaviest() for name in one.threads} - names
    assert left.startswith("pin:")


def test_the_messages_of_very_many_conversations_are_counted(memory):
    for n in range(502):
        memory.conversations.create(f"{n}", messages=[{"role": "user", "content": "x"}])

    found = memory.stats()

    assert (found.conversations, found.messages) == (502, 502)


def test_a_segment_that_no_checkpoint_uses_is_reported(memory):
    memory.thread("chat").save({"text": LONG})
    backend_of(memory).database.writer.execute(
        "insert into segment select key + 9, packing, data, checksum, 1 from segment"
    )

    found = memory.verify()

    assert not found.ok
    assert [str(problem) for problem in found.problems] == [
        "1 segments are not used by any checkpoint"
    ]


def test_a_deleted_thread_without_forks_is_not_salvaged(tmp_path):
    with holdfast.open(tmp_path / "a.db") as store:
        store.thread("gone").save({"n": 1})
        store.thread("gone").delete()
        store.thread("here").save({"n": 2})
        report = store.salvage(str(tmp_path / "b.db"))

    assert (report.threads, report.checkpoints, report.lost) == (1, 1, ())
    with holdfast.open(tmp_path / "b.db") as copy:
        assert [thread.id for thread in copy.threads()] == ["here"]


def test_a_store_of_many_portions_is_verified_as_a_whole(memory):
    """A portion has 1,000 checkpoints; a parent may be further away than that."""
    main = memory.thread("main")
    early = main.save({"text": "x" * 600})
    for n in range(2050):
        main.append(messages=[n])
    main.fork("fork", at=early).append(messages=["y" * 600])
    main.rewind(early)
    main.append(messages=["z" * 600])
    memory.thread("other").save({"text": "x" * 600})
    told = []

    found = memory.verify(progress=lambda done, of: told.append((done, of)))

    facts = memory.stats()
    assert found.problems == ()
    assert (found.threads, found.checkpoints) == (3, 2054)
    assert (found.checkpoints, found.segments) == (facts.checkpoints, facts.segments)
    assert told == sorted(told)
    assert told[0] == (0, 2054)
    assert told[-1] == (2054, 2054)
