"""What a caller decided about an effect left behind is remembered."""

import pytest

from holdfast import Conflict
from holdfast.effects import Compensation
from holdfast.testing import raises
from support.payments import World, asking_to_pay, pay

ASKED = {"role": "user", "content": "Pay Bob 500."}


@pytest.fixture
def world():
    return World()


def recorder(store, world, id="c", **options):
    return store.conversations.recorder(id, tools=world.tools(), **options)


def asked(store, world, **options):
    run = recorder(store, world, **options)
    run.add(ASKED)
    run.save(label="asked")
    return run


def killed_paying(store, world):
    """The process died within a payment; another one goes on before it."""

    def die(**arguments):
        raise KeyboardInterrupt

    run = asked(store, world)
    run.llm_response(asking_to_pay("call-1", "a1"))
    with pytest.raises(KeyboardInterrupt):
        run.call("call-1", die)
    run = recorder(store, world)
    run.resume(at="label:asked", discard=True)
    return run


def test_an_effect_repeated_on_purpose_is_not_asked_about_again(memory, world):
    run = asked(memory, world, effects="refuse")
    pay(run, "call-1", "a1")
    run.save()
    run.resume(at="label:asked")
    run.llm_response(asking_to_pay("call-2", "b1"))
    with raises(Conflict, "effect_happened"):
        run.call("call-2")

    run.tool_result("call-2", run.call("call-2", again=True))

    assert pay(run, "call-3", "c1") == {"receipt": "c1"}
    assert [ref for _, _, ref in world.paid] == ["a1", "b1", "c1"]
    [first, *_] = memory.conversations.thread("c").effects(left_behind=True)
    assert memory.conversations.thread("c").effects()[0].settles == first.place


def test_what_is_known_on_one_line_is_known_on_all(memory, world):
    run = killed_paying(memory, world)
    memory.conversations.thread("c").fork("conversation:f")
    run.llm_response(asking_to_pay("call-2", "b1"))
    run.resolve("call-2", {"receipt": "a1"})

    [first] = memory.conversations.thread("c").effects(left_behind=True)
    assert (first.status, first.result) == ("completed", {"receipt": "a1"})
    assert pay(recorder(memory, world, "f"), "call-3", "c1") == {"receipt": "a1"}
    assert world.paid == []


def test_an_unknown_effect_repeated_on_purpose_does_not_stop_other_lines(memory, world):
    run = killed_paying(memory, world)
    run.llm_response(asking_to_pay("call-2", "b1"))
    run.call("call-2", again=True)
    run.resume(at="label:asked", discard=True)

    assert pay(run, "call-3", "c1") == {"receipt": "b1"}
    assert [ref for _, _, ref in world.paid] == ["b1"]


def test_what_failed_or_was_undone_is_not_undone(memory, world):
    def fail(**arguments):
        raise ValueError("no money")

    run = asked(memory, world)
    pay(run, "call-1", "a1")
    run.llm_response(asking_to_pay("call-2", "b1"))
    with pytest.raises(ValueError, match="no money"):
        run.call("call-2", fail)
    run.resume(at="label:asked", discard=True)

    assert [effect.call_id for effect in run.compensate().undone] == ["call-1"]
    assert run.compensate() == Compensation()
    assert world.cancelled == ["a1"]


def test_an_effect_taken_over_meanwhile_is_not_undone(memory, world):
    def another_pays(effect):
        assert pay(recorder(memory, world), "call-3", "c1") == {"receipt": "a1"}
        world.cancel(effect)

    asked(memory, world)
    tools = world.tools(undo=another_pays)
    run = memory.conversations.recorder("c", tools=tools)
    pay(run, "call-1", "a1")
    pay(run, "call-2", "b1", to="eve")
    run.resume(at="label:asked", discard=True)

    found = run.compensate()

    assert [effect.call_id for effect in found.undone] == ["call-2"]
    assert world.cancelled == ["b1"]
