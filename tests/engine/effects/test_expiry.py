"""The ledger forgets what is old, and nothing that is still needed."""

from datetime import timedelta

import pytest

from holdfast import Retention
from holdfast.strategy import never
from support.payments import World, asking_to_pay, make, pay

ASKED = {"role": "user", "content": "Pay Bob 500."}
HOUR = timedelta(hours=1)


@pytest.fixture
def world():
    return World()


def recorder(store, world, id="c", **more):
    return store.conversations.recorder(id, tools=world.tools(), **more)


def asked(store, world):
    run = recorder(store, world)
    run.add(ASKED)
    run.save(label="asked")
    return run


def references(world):
    return [ref for _, _, ref in world.paid]


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_result_that_no_transcript_has_stays(store, clock, world, is_saved):
    run = asked(store, world)
    run.llm_response(asking_to_pay("call-1", "a1"))
    if is_saved:
        run.save()
    run.call("call-1")
    clock.advance(2 * HOUR)

    store.prune(Retention(effects=HOUR))

    run = recorder(store, world)
    assert run.open_calls == []
    assert run.call("call-1") == {"receipt": "a1"}
    assert references(world) == ["a1"]


def test_a_result_that_only_a_fork_waits_for_stays(memory, clock, world):
    run = asked(memory, world)
    run.llm_response(asking_to_pay("call-1", "a1"))
    run.save()
    memory.conversations.thread("c").fork("conversation:f")
    make(run, "call-1")
    run.save()
    clock.advance(2 * HOUR)

    memory.prune(Retention(effects=HOUR))

    assert recorder(memory, world, "f").call("call-1") == {"receipt": "a1"}
    assert references(world) == ["a1"]


def test_an_effect_stays_with_the_call_that_took_it_over(store, clock, world):
    run = asked(store, world)
    pay(run, "call-1", "a1")
    run.save()
    run.resume(at="label:asked")
    clock.advance(2 * HOUR)
    pay(run, "call-2", "b1")
    run.save()

    store.prune(Retention(effects=HOUR))

    run = recorder(store, world)
    run.resume(at="label:asked")
    assert pay(run, "call-3", "c1") == {"receipt": "a1"}
    assert references(world) == ["a1"]


@pytest.mark.parametrize("end", [ValueError, KeyboardInterrupt])
def test_the_attempts_at_a_call_stay_together(memory, clock, world, end):
    def fail(**arguments):
        raise end

    run = asked(memory, world)
    run.llm_response(asking_to_pay("call-1", "a1"))
    with pytest.raises(end):
        run.call("call-1", fail)
    clock.advance(2 * HOUR)
    run.call("call-1", again=True)
    run.tool_result("call-1", "paid")
    run.save()

    memory.prune(Retention(effects=HOUR))
    assert recorder(memory, world).call("call-1") == {"receipt": "a1"}
    clock.advance(2 * HOUR)
    memory.prune(Retention(effects=HOUR))

    assert references(world) == ["a1"]
    assert memory.conversations.thread("c").effects() == []
    assert recorder(memory, world).interrupted() == []


def test_a_result_stays_in_a_conversation_without_a_checkpoint(store, clock, world):
    run = recorder(store, world)
    run.add(ASKED)
    run.llm_response(asking_to_pay("call-1", "a1"))
    run.call("call-1")
    clock.advance(2 * HOUR)

    store.prune(Retention(effects=HOUR))

    run = recorder(store, world)
    assert run.open_calls == []
    assert references(world) == ["a1"]


def test_a_call_stays_on_the_line_that_workers_have_claimed_in_turn(
    memory, clock, world
):
    run = asked(memory, world)
    pay(run, "call-1", "a1", to="eve")
    run.save()
    clock.advance(2 * HOUR)
    pay(recorder(memory, world, save=never()), "call-2", "a2")
    for name in ("second", "third"):
        run = recorder(memory, world, save=never())
        run.add({"role": "user", "content": name})

    memory.prune(Retention(effects=HOUR))

    run.save()
    made = memory.conversations.thread("c").effects()
    assert [effect.arguments["ref"] for effect in made] == ["a2"]
