"""No sequence of rewinds, forks and failures makes an effect happen twice."""

import pytest

from holdfast.strategy import after_reply
from support.payments import World, asking_to_pay, make, pay

ASKED = {"role": "user", "content": "Pay Bob 500."}


@pytest.fixture
def world():
    return World()


def recorder(store, world, id="c", **options):
    options.setdefault("tools", world.tools())
    return store.conversations.recorder(id, **options)


def asked(store, world, **options):
    run = recorder(store, world, **options)
    run.add(ASKED)
    run.save(label="asked")
    return run


def paid(store, world, **options):
    run = asked(store, world, **options)
    pay(run, "call-1", "a1")
    run.save()
    return run


def references(world):
    return [ref for _, _, ref in world.paid]


def fail(**arguments):
    raise ValueError("no money")


def test_a_fork_has_the_call_that_took_an_effect_over(store, world):
    run = paid(store, world)
    run.resume(at="label:asked")
    run.llm_response(asking_to_pay("call-2", "f9"))
    run.save(label="requested")
    make(run, "call-2")
    run.save()
    store.conversations.thread("c").fork("conversation:f", "label:requested")

    forked = recorder(store, world, "f")

    assert make(forked, "call-2") == {"receipt": "a1"}
    assert references(world) == ["a1"]
    [origin] = store.conversations.thread("c").effects(left_behind=True)[:1]
    found = store.thread("conversation:f").effects()
    assert {effect.replays for effect in found} == {origin.place}


def test_a_call_that_failed_is_not_made_if_another_line_has_the_effect(store, world):
    run = asked(store, world, save=after_reply())
    run.llm_response(asking_to_pay("call-1", "a1"))
    requested = run.checkpoint
    with pytest.raises(ValueError, match="no money"):
        run.call("call-1", fail)
    run.resume(at="label:asked")
    pay(run, "call-2", "b1")
    run.save()
    run.resume(at=requested)

    assert run.call("call-1") == {"receipt": "b1"}

    assert references(world) == ["b1"]


def test_a_call_whose_effect_was_undone_is_made_again(store, world):
    run = asked(store, world, save=after_reply())
    run.llm_response(asking_to_pay("call-1", "a1"))
    requested = run.checkpoint
    make(run, "call-1")
    run.save()
    run.resume(at="label:asked", compensate=True)
    assert world.cancelled == ["a1"]

    run.resume(at=requested, discard=True)

    assert [call.id for call in run.open_calls] == ["call-1"]
    assert run.call("call-1") == run.call("call-1") == {"receipt": "a1"}
    assert references(world) == ["a1", "a1"]


def test_a_fork_makes_a_call_whose_effect_was_undone(store, world):
    run = asked(store, world, save=after_reply())
    run.llm_response(asking_to_pay("call-1", "a1"))
    requested = run.checkpoint
    make(run, "call-1")
    run.save()
    run.resume(at="label:asked", compensate=True)
    store.conversations.thread("c").fork("conversation:f", requested)

    assert make(recorder(store, world, "f"), "call-1") == {"receipt": "a1"}

    assert references(world) == ["a1", "a1"]


def test_a_call_interrupted_after_its_effect_was_undone_is_found(memory, world):
    run = asked(memory, world, save=after_reply())
    run.llm_response(asking_to_pay("call-1", "a1"))
    requested = run.checkpoint
    make(run, "call-1")
    run.save()
    run.resume(at="label:asked", compensate=True)
    run.resume(at=requested, discard=True)

    def die(**arguments):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run.call("call-1", die)

    assert [call.id for call in run.interrupted()] == ["call-1"]
    assert recorder(memory, world).open_calls == []


def test_an_equal_call_after_a_fork_is_simply_another_call(store, world):
    paid(store, world)
    store.conversations.thread("c").fork("conversation:f")

    run = recorder(store, world, "f")

    assert pay(run, "call-2", "b1") == {"receipt": "b1"}
    assert references(world) == ["a1", "b1"]


def test_a_fork_makes_a_call_that_failed_in_its_origin(store, world):
    run = asked(store, world)
    run.llm_response(asking_to_pay("call-1", "a1"))
    run.save()
    with pytest.raises(ValueError, match="no money"):
        run.call("call-1", fail)
    store.conversations.thread("c").fork("conversation:f")

    assert make(recorder(store, world, "f"), "call-1") == {"receipt": "a1"}


def test_an_effect_taken_over_before_counts_once(store, world):
    run = paid(store, world)
    run.resume(at="label:asked")
    pay(run, "call-2", "b1")
    run.save()
    run.resume(at="label:asked")

    assert pay(run, "call-3", "c1") == {"receipt": "a1"}
    assert pay(run, "call-4", "d1") == {"receipt": "d1"}
    assert references(world) == ["a1", "d1"]
