"""Agents, conversations and documents: references that lead nowhere, ids in use."""

import pytest
from msgspec.structs import replace

from holdfast import Agent, Conflict, Message, NotFound, Store
from holdfast.backends import Layer
from holdfast.testing import raises
from support.stores import backend_of

CALL = {"id": "a", "function": {"name": "look", "arguments": "{}"}}


@pytest.mark.parametrize("kind", ["agents", "conversations", "documents"])
def test_an_unknown_checkpoint_is_named_and_not_the_record(kind, memory):
    memory.agents.save(Agent(id="x"))
    memory.conversations.create("x")
    memory.documents.save("x", "text")

    with raises(NotFound) as refused:
        getattr(memory, kind).load("x", "nowhere")

    assert "nowhere" in str(refused.error)
    assert f"{kind}.list()" not in str(refused.error)
    assert refused.error.reference == "nowhere"


class Refusing(Layer):
    """A layer that lets nothing be saved, with a conflict of its own."""

    async def commit(self, writes):
        raise Conflict("the quota is used up", code="quota")

    def commit_each(self, batches):
        return [Conflict("the quota is used up", code="quota") for _ in batches]


@pytest.mark.parametrize("how", ["create", "get_or_create"])
def test_a_conflict_of_a_layer_is_not_taken_for_an_existing_conversation(how, memory):
    layer = Refusing(backend_of(memory))
    talks = Store(replace(memory.runner.context, backend=layer)).conversations
    calls = {
        "create": lambda: talks.create("c", owner="ann"),
        "get_or_create": lambda: talks.get_or_create("ann", "c"),
    }

    with raises(Conflict, "quota"):
        calls[how]()

    assert memory.conversations.find("c") is None


def test_a_conversation_is_not_saved_on_a_checkpoint_of_its_fork(memory):
    talks = memory.conversations
    talks.create("c", messages=[Message.user("one")])
    talks.thread("c").fork("conversation:d")
    talks.add("d", Message.user("two"))
    fork = talks.load("d")

    fork.id = "c"
    with raises(NotFound, "foreign"):
        talks.save(fork)

    assert talks.load("c").message_count == 1


@pytest.mark.parametrize("count", [1, 205])
def test_where_every_checkpoint_has_an_open_call_none_is_safe(count, memory):
    call = {"role": "assistant", "tool_calls": [CALL]}
    memory.conversations.create("c", messages=[call])
    for n in range(count - 1):
        memory.conversations.add("c", Message.user(str(n)))

    assert memory.conversations.latest_safe("c") is None


def test_a_safe_checkpoint_is_found_however_far_back(memory):
    safe = memory.conversations.create("c", messages=[Message.user("hi")])
    memory.conversations.add("c", {"role": "assistant", "tool_calls": [CALL]})
    for n in range(205):
        memory.conversations.add("c", Message.user(str(n)))

    assert memory.conversations.latest_safe("c").id == safe.checkpoint
