"""Calls that no message makes, and results that could not be recorded at once."""

import pytest

import holdfast
from holdfast import Conflict
from holdfast.testing import raises
from support.earlier_systems import watched
from support.payments import World, asking_to_pay
from support.recorders import HELLO, HI, Tool, recorder

STEP = {"id": "step", "name": "deploy", "arguments": {}}
POLICIES = ("replay", "refuse", "run")


@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_call_of_no_message_is_made_once_over_restarts(memory, policy, is_saved):
    told, tool = recorder(memory, effects=policy), Tool()
    if is_saved:
        told.llm_response(HELLO)
    told.call(STEP, tool)

    assert recorder(memory, effects=policy).call(STEP, tool) == "found"

    assert tool.ran == 1
    assert recorder(memory).pending == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_a_call_of_no_message_is_known_as_interrupted_after_a_restart(memory, policy):
    told = recorder(memory, effects=policy)
    told.llm_response(HELLO)
    with pytest.raises(KeyboardInterrupt):
        told.call(STEP, Tool(KeyboardInterrupt()))

    told = recorder(memory, effects=policy)

    assert [call.id for call in told.interrupted()] == ["step"]
    with raises(Conflict, "call_interrupted"):
        told.call(STEP, Tool())
    assert told.resolve(STEP, "deployed") == "deployed"
    assert recorder(memory, effects=policy).call(STEP, Tool()) == "deployed"


@pytest.mark.parametrize("policy", POLICIES)
def test_a_call_of_no_message_can_be_resolved_before_it_began(memory, policy):
    told = recorder(memory, effects=policy)
    told.llm_response(HELLO)
    told.resolve(STEP, "by hand")

    assert recorder(memory, effects=policy).call(STEP, Tool()) == "by hand"


def test_a_call_of_no_message_is_left_behind_by_going_back(memory):
    told, tool = recorder(memory), Tool()
    told.llm_response(HELLO)
    told.save(label="here")
    told.call(STEP, tool)
    told.resume(at="label:here", discard=True)

    assert [effect.call_id for effect in told.left_behind] == ["step"]
    assert told.call({**STEP, "id": "again"}, tool) == "found"
    assert tool.ran == 1


def test_a_result_not_recorded_is_not_that_of_another_call(memory):
    store, backend = watched(memory)
    world = World()
    told = recorder(store, tools=world.tools())
    told.add(HI)
    told.save(label="asked")
    told.llm_response(asking_to_pay("call_0", "a1"))
    told.save()

    def fail():
        raise holdfast.HoldfastError("no room", code="disk_full")

    def run(**arguments):
        backend.before["commit"] = fail
        return "paid"

    with raises(holdfast.HoldfastError, "disk_full"):
        told.call("call_0", run)
    told.resume(at="label:asked", discard=True)
    told.llm_response(asking_to_pay("call_0", "b1", to="eve"))

    assert told.call("call_0") == {"receipt": "b1"}

    assert world.paid == [("eve", 500, "b1")]
    [behind] = memory.conversations.thread("chat").effects(left_behind=True)
    assert (behind.status, behind.result) == ("completed", "paid")
