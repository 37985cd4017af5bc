"""Reading a part of a state costs that part: counted in segments that are read."""

import pytest
from msgspec.structs import replace

from holdfast import Store
from holdfast.backends import Layer
from inner.engine import Cache
from support.samples import LONG
from support.stores import backend_of


class Counting(Layer):
    """Counts the segments that are read."""

    count = 0

    async def segments(self, family, runs):
        found = await super().segments(family, runs)
        self.count += len(found)
        return found

    async def read(self, keys):
        found = await super().read(keys)
        self.count += sum(len(getattr(one, "segments", None) or ()) for one in found)
        return found


@pytest.fixture
def counted(memory):
    """A thread with 1,000 appended elements, one large value, and what reads it."""
    chat = memory.thread("chat")
    chat.save({"text": LONG * 300, "title": "short"})
    for n in range(1000):
        chat.append(list=[f"{n} {LONG}"])
    layer = Counting(backend_of(memory))
    context = replace(memory.runner.context, backend=layer, cache=Cache(0))
    return Store(context).thread("chat"), layer


def test_the_end_of_a_list_costs_as_many_segments_as_elements(counted):
    chat, layer = counted

    assert chat.tail("list", 10) == [f"{n} {LONG}" for n in range(990, 1000)]

    # Read in two requests: as if each segment had two elements, then four times that.
    assert layer.count <= 6 + 24


def test_elements_after_a_position_cost_as_many_segments(counted):
    chat, layer = counted
    after = chat.elements("list", limit=500).cursor
    layer.count = 0

    page = chat.elements("list", after=after, limit=10)

    assert list(page) == [f"{n} {LONG}" for n in range(500, 510)]
    assert layer.count <= 11
    layer.count = 0
    end = chat.elements("list", after=page.cursor, limit=None).cursor
    assert layer.count == 491
    layer.count = 0
    assert len(chat.elements("list", after=end)) == 0
    assert layer.count == 1


def test_a_value_costs_its_own_segments(counted):
    chat, layer = counted

    assert chat.values("title") == {"title": "short"}
    assert layer.count == 0
    assert chat.values("title", "text")["text"] == LONG * 300
    assert 0 < layer.count < 50


def test_amending_reads_only_what_it_replaces(counted):
    chat, layer = counted

    chat.amend(lists={"list": ["more"]}, values={"title": "other", "new": LONG})
    assert layer.count == 0
    chat.amend(values={"text": LONG * 301})

    assert 0 < layer.count < 50
