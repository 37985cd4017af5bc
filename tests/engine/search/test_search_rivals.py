"""Searching while others delete and compact, and in more than one page."""

import pytest
from msgspec.structs import replace

from holdfast import HoldfastError, Store
from holdfast.backends import Candidates, Layer, Outdated, Scattered
from holdfast.testing import raises
from holdfast.testing._search import places, user
from inner.engine import Packing
from support.samples import LONG
from support.stores import backend_of

NEEDLE = f"needle {LONG}"


class Overtaken(Layer):
    """A layer that lets a rival act once, after the first answer to a kind of query."""

    def __init__(self, backend, kind, rival):
        super().__init__(backend)
        self.kind, self.rivals = kind, [rival]

    async def scan(self, query):
        page = await self.backend.scan(query)
        while self.rivals and isinstance(query, self.kind):
            self.rivals.pop()()
        return page


def _over(store, layer):
    packing = Packing(layer, compress=False)
    return Store(replace(store.runner.context, backend=packing))


def _delete(store):
    store.conversations.delete("c")


def _remake(store):
    store.conversations.delete("c")
    store.conversations.create("c", messages=[user("other")])


@pytest.mark.parametrize("kind", [Outdated, Candidates])
@pytest.mark.parametrize("rival", [_delete, _remake])
def test_what_is_deleted_during_a_search_is_not_found(kind, rival, memory):
    for name in ("c", "d"):
        memory.conversations.create(name, messages=[user(NEEDLE)])
    layer = Overtaken(backend_of(memory), kind, lambda: rival(memory))

    found = _over(memory, layer).conversations.search("needle")

    assert layer.rivals == []
    assert places(found) == [("d", 0)]
    assert places(memory.conversations.search("needle")) == [("d", 0)]


class WithoutIndex(Layer):
    """A layer that cannot write the index."""

    async def index(self, batch):
        raise HoldfastError("the key of the index is missing", code="no_key")


def test_an_error_of_the_index_that_is_not_of_the_disk_is_raised(memory):
    memory.conversations.create("c", messages=[user(NEEDLE)])

    with raises(HoldfastError, "no_key"):
        _over(memory, WithoutIndex(backend_of(memory))).conversations.search("needle")


@pytest.mark.parametrize("text", ["needle", "ne"])
def test_a_search_goes_through_as_many_pages_as_there_are(text, memory):
    for n in range(105):
        memory.conversations.create(f"{n}", messages=[user("needle")])

    found = memory.conversations.search(text, limit=None)

    assert places(found) == [(f"{n}", 0) for n in range(104, -1, -1)]


class Held(Layer):
    """A layer that keeps back what is written to the index."""

    def __init__(self, backend):
        super().__init__(backend)
        self.batches = []

    async def index(self, batch):
        self.batches.append(batch)


class Late(Layer):
    """A layer that lets the kept batches of a rival in before its own."""

    def __init__(self, backend, batches):
        super().__init__(backend)
        self.batches = batches

    async def index(self, batch):
        while self.batches:
            await self.backend.index(self.batches.pop(0))
        await self.backend.index(batch)


def test_an_index_does_not_count_as_complete_if_a_rival_indexed_something_older(memory):
    memory.conversations.create("c", messages=[user(NEEDLE)])
    memory.conversations.search("needle")
    memory.conversations.add("c", user("older"))
    held = Held(backend_of(memory))
    _over(memory, held).conversations.search("needle")
    memory.conversations.add("c", user("newer"))
    assert len(held.batches) == 1

    late = _over(memory, Late(backend_of(memory), held.batches))

    assert places(late.conversations.search("newer")) == [("c", 2)]
    assert held.batches == []
    assert places(memory.conversations.search("newer")) == [("c", 2)]
    assert places(memory.conversations.search("older")) == [("c", 1)]


def _scatter(store):
    """Two long stretches in the index, and after them many short ones."""
    long = "x" * 5000
    store.conversations.create("c", messages=[user(long), user(long)])
    for n in range(20):
        store.conversations.search("needle")
        store.conversations.add("c", user(f"needle {n}"))
    store.conversations.search("needle")
    # The last of the index, so that what is written again has another number.
    store.conversations.create("d", messages=[user("other")])
    store.conversations.search("needle")


def _stretches(store):
    number = store.thread("conversation:c").about.number
    found = backend_of(store).database.writer.execute(
        "select number, first, last from search_stretch where thread = ?"
        " order by first",
        (number,),
    )
    return [tuple(row) for row in found]


def test_compacting_joins_the_short_stretches_and_leaves_the_long(memory):
    _scatter(memory)
    before = _stretches(memory)
    assert len(before) == 22

    memory.compact()

    *long, (_, first, last) = _stretches(memory)
    assert long == before[:2]
    assert (first, last) == (2, 21)
    assert len(memory.conversations.search("needle")) == 20


def test_stretches_that_a_rival_has_just_joined_are_not_written_again(memory):
    _scatter(memory)
    joined = []

    def compact():
        memory.compact()
        joined.extend(_stretches(memory))

    _over(memory, Overtaken(backend_of(memory), Scattered, compact)).compact()

    assert len(joined) == 3
    assert _stretches(memory) == joined
    assert len(memory.conversations.search("needle")) == 20
