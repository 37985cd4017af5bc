"""A family with many checkpoints is copied in parts, and a kill does no harm."""

import tracemalloc
from itertools import count

import pytest
from msgspec.structs import replace

import holdfast
from holdfast import Retention, Store
from holdfast.backends import Layer
from inner.engine import copy_store
from inner.sqlite import inspection
from support.samples import LONG
from support.stores import backend_of


class Killed(BaseException):
    """The end of a process."""


class Dying(Layer):
    """A layer that takes over so many parts, and dies."""

    def __init__(self, backend, most):
        super().__init__(backend)
        self.left = most

    async def adopt(self, adoption):
        if self.left == 0:
            raise Killed
        self.left -= 1
        await self.backend.adopt(adoption)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(copy_store, "CHECKPOINTS", 3)
    monkeypatch.setattr(copy_store, "CHUNK", 4)
    monkeypatch.setattr(inspection, "CHUNK", 4)


def _used(chat, n):
    chat.append(log=[f"{n} {LONG}"])
    chat.record(f"key {n}", n)
    chat.save({"log": [f"edit {n} {LONG}"], "text": f"{n // 3} {LONG}"})


def _everything(store):
    return {
        t.id: (
            t.head.id,
            t.changed,
            store.thread(t.id).journal(),
            store.thread(t.id).moves(limit=None).items,
            [
                (c.id, c.seq, c.parent, c.digest, str(store.load(c)))
                for c in store.thread(t.id).history(limit=None, all=True)
            ],
        )
        for t in store.threads(limit=None)
    }


def _copied(source, target, most, **options):
    dying = Dying(backend_of(target), most)
    other = Store(replace(target.runner.context, backend=dying))
    try:
        source.copy_to(other, **options)
    except Killed:
        return False
    return True


def test_a_copy_that_was_killed_anywhere_is_completed(memory):
    chat = memory.thread("chat")
    for n in range(5):
        _used(chat, n)
    chat.fork("fork", at="@~4").append(log=[LONG])
    chat.rewind("@~2")

    for most in count():
        with holdfast.open(":memory:") as other:
            if _copied(memory, other, most):
                break
            # What the first attempt copied may be gone when it goes on.
            _used(chat, 100 + most)
            memory.prune(Retention(last=6))
            memory.copy_to(other)

            assert _everything(other) == _everything(memory)
            assert other.verify().problems == ()
    assert most > 8


def test_an_update_that_was_killed_anywhere_is_completed(memory):
    for name in ("long", "short", "gone"):
        _used(memory.thread(name), 0)
    before = holdfast.open(":memory:")
    memory.copy_to(before)
    _used(memory.thread("long"), 1)
    memory.thread("short").record("key", 1)
    memory.thread("gone").delete()

    for most in count():
        with holdfast.open(":memory:") as other:
            before.copy_to(other)
            if _copied(memory, other, most, update=True):
                break
            memory.copy_to(other, update=True)

            assert _everything(other) == _everything(memory)
            assert other.verify().problems == ()
    before.close()
    assert most > 4


def test_a_copy_tells_what_it_holds(memory):
    for n in range(5):
        _used(memory.thread("chat"), n)

    with holdfast.open(":memory:") as other:
        first = memory.copy_to(other)
        again = memory.copy_to(other)
        stored = other.stats()

    assert (first.threads, first.checkpoints, first.journal_entries) == (1, 10, 5)
    assert first.segments == stored.segments
    assert (again.checkpoints, again.skipped) == (10, 1)


def _copy(store, path):
    with holdfast.open(path, durability="normal") as other:
        store.copy_to(other)


def _salvage(store, path):
    store.salvage(path)


@pytest.mark.parametrize("work", [_copy, _salvage])
def test_memory_does_not_grow_with_the_checkpoints(work, tmp_path, monkeypatch):
    monkeypatch.setattr(inspection, "CHUNK", 20)
    monkeypatch.setattr(copy_store, "CHUNK", 20)
    peaks = []
    for times in (100, 600):
        with holdfast.open(":memory:", cache_size=0) as store:
            for n in range(times):
                store.thread("chat").save({"n": n, "text": LONG})
            tracemalloc.start()
            work(store, f"{tmp_path}/{times}.db")
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    assert peaks[1] < 2.5 * peaks[0]
