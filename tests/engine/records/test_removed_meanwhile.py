"""What is removed while it is read is missing, and not called damaged."""

from msgspec.structs import replace

from holdfast import Message, NotFound, Store
from holdfast.backends import Layer
from holdfast.testing import raises
from support.samples import LONG
from support.stores import backend_of


class Overtaken(Layer):
    """A layer that lets a rival act once, before the first segments are read."""

    def __init__(self, backend, rival):
        super().__init__(backend)
        self.rivals = [rival]

    async def segments(self, family, runs):
        while self.rivals:
            self.rivals.pop()()
        return await self.backend.segments(family, runs)


def _overtaken(store, rival):
    layer = Overtaken(backend_of(store), rival)
    return Store(replace(store.runner.context, backend=layer))


def test_no_title_is_made_for_a_conversation_that_is_deleted_meanwhile(memory):
    memory.conversations.create("c", messages=[Message.user(LONG)])
    one = _overtaken(memory, lambda: memory.conversations.delete("c"))

    with raises(NotFound) as refused:
        one.conversations.auto_title("c")

    assert "conversation 'c' does not exist" in str(refused.error)
    assert memory.conversations.find("c") is None
