"""A family with many checkpoints is read in pages and pruned in parts."""

import tracemalloc
from datetime import timedelta

import pytest
from msgspec.structs import replace

import holdfast
from holdfast import Retention, Store, Thin
from holdfast.backends import Layer
from inner.engine import prune_plans, removal_family
from support.samples import LONG
from support.stores import backend_of

POLICIES = [
    Retention(last=1),
    Retention(last=4, forks=False, labelled=False),
    Retention(thin=Thin(daily=3)),
    Retention(last=2, threads_per_owner=1),
]


def _sizes(monkeypatch, *, large, part, page):
    for module in (prune_plans, removal_family):
        monkeypatch.setattr(module, "CHECKPOINTS", large)
    monkeypatch.setattr(removal_family, "PART", part)
    monkeypatch.setattr(removal_family, "PAGE", page)


def _grown(store, clock):
    """A family with forks, a fork that was deleted, marks, a rewind and edits."""
    chat = store.thread("chat", owner="ann")
    for n in range(30):
        clock.advance(timedelta(hours=n // 2))
        if n % 4:
            chat.append(log=[f"{n} {LONG}"])
        else:
            edited = {"log": [f"edit {n} {LONG}"], "text": f"{n} {LONG}"}
            chat.save(edited, label="x" if n == 8 else None)
        if n in (5, 11, 17):
            fork = chat.fork(f"fork {n}")
            for m in range(5):
                fork.append(log=[f"{n} {m} {LONG}"])
    chat.rewind("@~3")
    chat.append(log=[LONG])
    store.thread("fork 5").fork("deeper", at="@~2").append(log=[LONG])
    store.thread("fork 5").delete()


def _left(store):
    return {
        (c.id, c.parent, c.label, str(store.load(c)))
        for t in store.threads()
        for c in store.thread(t.id).history(limit=None, all=True)
    }


@pytest.mark.parametrize("policy", POLICIES)
def test_parts_remove_what_one_removal_does(policy, clock, monkeypatch):
    found = []
    for large in (10_000, 1):
        clock.now = 0
        _sizes(monkeypatch, large=large, part=3, page=4)
        ids = map("{:032x}".format, range(1, 1000))
        with holdfast.open(":memory:", clock=clock, new_id=ids.__next__) as store:
            _grown(store, clock)
            before = _left(store)
            counted = store.prune(policy, dry_run=True)
            assert _left(store) == before

            assert store.prune(policy) == counted
            assert store.verify().problems == ()
            found.append((counted, _left(store)))

    assert found[0] == found[1]
    assert found[0][0].checkpoints > 6


class Outpaced(Layer):
    """A layer that lets rivals act before the prunes of their numbers."""

    def __init__(self, backend, rivals):
        super().__init__(backend)
        self.rivals, self.prunes = rivals, 0

    async def prune(self, plan):
        self.rivals.pop(self.prunes, lambda: None)()
        self.prunes += 1
        return await self.backend.prune(plan)


def test_others_may_fork_save_and_remove_between_two_parts(memory, monkeypatch):
    _sizes(monkeypatch, large=1, part=3, page=4)
    chat = memory.thread("chat")
    for n in range(20):
        chat.save({"log": [f"{n} {LONG}"], "text": f"{n // 7} {LONG}"})
    rivals = {
        1: lambda: chat.fork("fork", at="@12"),
        3: lambda: chat.append(log=[LONG]),
        4: lambda: chat.delete("@~1"),
    }
    layer = Outpaced(backend_of(memory), rivals)

    Store(replace(memory.runner.context, backend=layer)).prune(Retention(last=2))

    assert rivals == {}
    assert layer.prunes > 7
    assert memory.thread("fork").load()["log"] == [f"11 {LONG}"]
    assert len(chat.load()["log"]) == 2
    assert memory.verify().problems == ()


@pytest.mark.parametrize(
    "mark",
    [
        lambda chat: chat.label("precious", ref="@15"),
        lambda chat: chat.tag("precious", ref="@15"),
    ],
    ids=["label", "tag"],
)
def test_what_is_marked_between_two_parts_stays(mark, memory, monkeypatch):
    _sizes(monkeypatch, large=1, part=3, page=4)
    chat = memory.thread("chat")
    for n in range(20):
        chat.append(log=[n])
    layer = Outpaced(backend_of(memory), {2: lambda: mark(chat)})

    Store(replace(memory.runner.context, backend=layer)).prune(Retention(last=2))

    assert [c.step for c in chat.history(limit=None)] == [20, 19, 15]
    assert memory.verify().problems == ()


def test_memory_does_not_grow_with_the_checkpoints(memory, monkeypatch):
    _sizes(monkeypatch, large=100, part=100, page=50)
    peaks = []
    for count in (600, 1800):
        chat = memory.thread(f"{count}")
        for n in range(count):
            chat.append(log=[n])
        tracemalloc.start()
        memory.prune(Retention(last=1), thread=f"{count}", dry_run=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert peaks[1] < 1.6 * peaks[0]
