"""The last messages of checkpoints, also where a message is kept in pieces."""

import pytest
from msgspec.structs import replace

from holdfast import Agent, Corrupt, Message, Store
from holdfast.backends import Layer
from holdfast.testing import raises
from support.samples import LONG
from support.stores import backend_of


@pytest.mark.parametrize("count", [1, 20])
def test_a_message_that_quotes_earlier_ones_is_read_whole(count, memory):
    # The stored segments of the earlier messages become pieces of the new one.
    earlier = [{"role": "user", "content": f"{n}{LONG * 30}"} for n in range(count)]
    first = {"role": "system", "content": LONG}
    quoting = {"role": "user", "parts": [1, *earlier, 2]}
    thread = memory.thread("chat")
    thread.save({"messages": [first, *earlier]})
    thread.save({"messages": [first, quoting]})

    found = memory.last_messages(list(thread.history()))

    assert found == [quoting, earlier[-1]]


class Garbled(Layer):
    """A layer that gives other bytes than were stored, as with a wrong key."""

    async def segments(self, family, runs):
        found = await self.backend.segments(family, runs)
        return [replace(segment, data=segment.data[::-1]) for segment in found]


def _garbled(store):
    layer = Garbled(backend_of(store))
    return Store(replace(store.runner.context, backend=layer))


def test_a_last_message_that_cannot_be_read_is_damage(memory):
    thread = memory.thread("chat")
    thread.save({"messages": [{"role": "user", "content": LONG}]})

    with raises(Corrupt):
        _garbled(memory).last_messages(list(thread.history()))


def test_an_agent_is_not_restored_to_other_bytes_than_were_saved(memory):
    memory.agents.save(Agent(id="a"))
    memory.conversations.create("c", agent="a", messages=[Message.user(LONG)])
    made = memory.agents.checkpoint("a")
    memory.conversations.add("c", Message.user("later"))

    with raises(Corrupt) as refused:
        _garbled(memory).agents.restore("a", made)

    assert "its digest does not match" in str(refused.error)
    assert memory.conversations.load("c").message_count == 2
