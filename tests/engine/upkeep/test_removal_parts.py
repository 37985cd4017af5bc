"""Threads of large families are deleted, rewound and erased in parts."""

import tracemalloc
from datetime import timedelta

import pytest
from msgspec.structs import replace

import holdfast
from holdfast import Retention, Store
from holdfast.backends import Layer
from holdfast.testing import raises
from inner.engine import prune_plans, removal_family
from support.samples import LONG
from support.stores import backend_of

REMOVALS = {
    "delete": lambda store: store.thread("chat").delete(),
    "delete two": lambda store: store.delete("aside", "below"),
    "rewind": lambda store: store.thread("chat").rewind("@10", hard=True),
    "erase": lambda store: store.erase(thread="aside", forks=True),
    "erase owner": lambda store: store.erase(owner="bob"),
    "prune": lambda store: store.prune(
        Retention(last=2, threads_in_all=2, forks=False)
    ),
    "prune threads": lambda store: store.prune(Retention(threads_in_all=2)),
}


def _sizes(monkeypatch, *, large, part=3):
    for module in (prune_plans, removal_family):
        monkeypatch.setattr(module, "CHECKPOINTS", large)
    monkeypatch.setattr(removal_family, "PART", part)
    monkeypatch.setattr(removal_family, "PAGE", 4)


@pytest.fixture
def grown(clock):
    """Opens stores that are equal: a family of four threads."""

    def opened():
        clock.now = 0
        ids = map("{:032x}".format, range(1, 1000))
        store = holdfast.open(":memory:", clock=clock, new_id=ids.__next__)
        chat = store.thread("chat", owner="ann")
        for n in range(20):
            chat.append(log=[f"{n} {LONG}"])
        for name, at in (("keep", "@9"), ("aside", "@4"), ("below", "aside")):
            source = store.thread(at) if at == "aside" else chat
            fork = source.fork(name, at="@~4" if at == "aside" else at)
            fork.describe(owner="ann" if name == "keep" else "bob")
            for n in range(12):
                text = f"{name} {n // 3} {LONG}"
                fork.save({"log": [f"{name} {n} {LONG}"], "text": text})
        clock.advance(timedelta(hours=1))
        for name in ("chat", "keep"):
            store.thread(name).append(log=[LONG])
        return store

    return opened


def _left(store):
    """Everything in a store, also what no living thread leads to."""
    assert store.verify().problems == ()
    stats = store.stats()
    return (
        stats.checkpoints,
        stats.segments,
        {
            (t.id, c.id, c.parent, str(store.load(c)))
            for t in store.threads()
            for c in store.thread(t.id).history(limit=None, all=True)
        },
    )


class Killed(BaseException):
    """The process died here."""


class Prunes(Layer):
    """A layer whose process dies before or after one of the prunes."""

    def __init__(self, backend, at=0, *, before=False):
        super().__init__(backend)
        self.at, self.before, self.count = at, before, 0

    async def prune(self, plan):
        self.count += 1
        if self.before and self.count == self.at:
            raise Killed
        pruned = await self.backend.prune(plan)
        if self.count == self.at:
            raise Killed
        return pruned


def _over(store, layer):
    return Store(replace(store.runner.context, backend=layer))


@pytest.mark.parametrize("what", REMOVALS)
def test_parts_remove_what_one_transaction_does(what, grown, monkeypatch):
    found = []
    for large in (10_000, 1):
        _sizes(monkeypatch, large=large)
        with grown() as store:
            layer = Prunes(backend_of(store))
            REMOVALS[what](_over(store, layer))
            found.append(_left(store))

    assert found[0] == found[1]
    assert layer.count > 3


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("what", REMOVALS)
def test_what_was_killed_between_two_parts_is_finished_by_the_next(
    what, before, grown, monkeypatch
):
    _sizes(monkeypatch, large=1)
    with grown() as store:
        REMOVALS[what](store)
        expected = _left(store)
    points = 0
    while True:
        points += 1
        with grown() as store:
            try:
                REMOVALS[what](
                    _over(store, Prunes(backend_of(store), points, before=before))
                )
            except Killed:
                problems = store.verify().problems
                assert all("erasure was interrupted" in p.what for p in problems)
                REMOVALS[what](store)
            else:
                break
            assert _left(store) == expected

    assert points > 3


def test_an_erasure_in_parts_counts_what_one_transaction_does(grown, monkeypatch):
    counted = []
    for large in (10_000, 1):
        _sizes(monkeypatch, large=large)
        with grown() as store:
            for n in range(10):
                store.thread("below").record(f"key {n}", n)
            for is_dry in (True, False):
                told = store.erase(owner="bob", dry_run=is_dry)
                counted.append((told.threads, told.checkpoints, told.entries))
            assert not list(store.threads(owner="bob"))

    assert set(counted) == {(2, 24, 10)}


class Outpaced(Layer):
    """A layer that lets a rival act before one of the prunes."""

    def __init__(self, backend, at, rival):
        super().__init__(backend)
        self.at, self.rival = at, rival

    async def prune(self, plan):
        self.at -= 1
        if self.at == 0:
            self.rival()
        return await self.backend.prune(plan)


RIVALS = {
    "a save": lambda store: store.thread("keep").append(log=[LONG]),
    "a fork": lambda store: store.thread("keep").fork("new", at="@8").append(log=[1]),
    "a removal": lambda store: store.thread("keep").delete("@12"),
}


@pytest.mark.parametrize("rival", RIVALS)
@pytest.mark.parametrize("what", ["delete", "delete two", "rewind", "erase owner"])
def test_others_may_change_the_family_between_two_parts(
    what, rival, grown, monkeypatch
):
    _sizes(monkeypatch, large=1)
    with grown() as store:
        layer = Outpaced(backend_of(store), 3, lambda: RIVALS[rival](store))
        REMOVALS[what](_over(store, layer))
        found = _left(store)
    with grown() as store:
        REMOVALS[what](store)
        RIVALS[rival](store)

        assert layer.at < 0
        assert found[:2] == _left(store)[:2]


def test_what_is_saved_once_a_rewind_has_moved_the_head_stays(memory, monkeypatch):
    _sizes(monkeypatch, large=1)
    chat = memory.thread("chat")
    for n in range(20):
        chat.append(log=[n])

    def save_and_overtake():
        chat.append(log=["new"])
        chat.tag("seen", ref="@20")

    layer = Outpaced(backend_of(memory), 3, save_and_overtake)
    _over(memory, layer).thread("chat").rewind("@4", hard=True)

    assert layer.at < 0
    assert chat.load()["log"] == [0, 1, 2, 3, "new"]
    assert memory.stats().checkpoints == 5
    assert memory.verify().problems == ()


def test_an_erasure_removes_what_a_killed_deletion_left(memory, monkeypatch):
    _sizes(monkeypatch, large=1)
    chat = memory.thread("chat", owner="ann")
    chat.append(log=[0])
    fork = chat.fork("fork")
    fork.describe(owner="bob")
    for n in range(20):
        fork.append(log=[n])
    with pytest.raises(Killed):
        _over(memory, Prunes(backend_of(memory), 3)).delete("fork")
    assert memory.stats().checkpoints > 1

    memory.erase(owner="bob")

    assert memory.stats().checkpoints == 1
    assert [t.id for t in memory.threads()] == ["chat"]


def test_a_fork_of_what_is_being_erased_stops_the_erasure(grown, monkeypatch):
    _sizes(monkeypatch, large=1)
    with grown() as store:

        def fork():
            store.thread("below").fork("new", at="@~1").append(log=[1])

        layer = Outpaced(backend_of(store), 3, fork)
        with raises(holdfast.Conflict, "in_use") as conflict:
            _over(store, layer).erase(thread="below")

        assert "what was erased before stays erased" in conflict.error.message
        assert store.thread("new").load()["log"][-1] == 1
        store.erase(thread="below", forks=True)
        assert _left(store)[0] == 21 + 13 + 12
        assert {t.id for t in store.threads()} == {"chat", "keep", "aside"}


@pytest.mark.parametrize("what", ["delete", "rewind", "erase"])
def test_memory_does_not_grow_with_what_is_removed(what, memory, monkeypatch):
    _sizes(monkeypatch, large=100, part=100)
    monkeypatch.setattr(removal_family, "PAGE", 50)
    removals = {
        "delete": lambda thread: thread.delete(),
        "rewind": lambda thread: thread.rewind("@2", hard=True),
        "erase": lambda thread: memory.erase(thread=thread.id),
    }
    peaks = []
    for count in (300, 900):
        memory.thread(f"root {count}").append(log=[0])
        fork = memory.thread(f"root {count}").fork(f"fork {count}")
        for n in range(count):
            fork.append(log=[n])
        tracemalloc.start()
        removals[what](fork)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert memory.stats().checkpoints < 10
    assert peaks[1] < 1.6 * peaks[0]
