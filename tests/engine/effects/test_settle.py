"""Recording how a call ended whose program was killed."""

import pytest

from holdfast import Conflict, NotFound
from holdfast.testing import raises
from inner.engine import CallEnd, settle
from support.payments import World, asking_to_pay


def die(**arguments):
    raise KeyboardInterrupt


@pytest.fixture
def interrupted(memory):
    """The name of a thread in which two calls began and did not end."""
    run = memory.conversations.recorder("c", tools=World().tools())
    run.add({"role": "user", "content": "Pay Bob twice."})
    for call in ("call-1", "call-2"):
        run.llm_response(asking_to_pay(call, call))
        with pytest.raises(KeyboardInterrupt):
            run.call(call, die)
    return memory.conversations.thread("c").id


def ended(store, thread):
    return {
        effect.call_id: (effect.status, effect.result)
        for effect in store.thread(thread).effects()
    }


def test_a_call_is_known_to_have_ended_once_that_is_recorded(memory, interrupted):
    assert {status for status, _ in ended(memory, interrupted).values()} == {"unknown"}

    memory.runner.save(settle, interrupted, "call-1", CallEnd({"receipt": 7}))
    memory.runner.save(settle, interrupted, "call-2", CallEnd(error="declined"))

    found = ended(memory, interrupted)
    assert found["call-1"] == ("completed", {"receipt": 7})
    assert found["call-2"][0] == "failed"


def test_the_end_of_a_call_is_recorded_once(memory, interrupted):
    memory.runner.save(settle, interrupted, "call-1", CallEnd("paid"))

    with raises(Conflict, "call_ended"):
        memory.runner.save(settle, interrupted, "call-1", CallEnd("not paid"))
    with raises(NotFound):
        memory.runner.save(settle, interrupted, "call-9", CallEnd("paid"))

    assert ended(memory, interrupted)["call-1"] == ("completed", "paid")
