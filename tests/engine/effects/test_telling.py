"""What going back leaves behind is told, also what no checkpoint had."""

import pytest

from holdfast.strategy import never
from support.payments import World, asking_to_pay, pay

ASKED = {"role": "user", "content": "Pay Bob 500."}


@pytest.fixture
def world():
    return World()


def recorder(store, world, **options):
    options = {"tools": world.tools(), "save": never()} | options
    return store.conversations.recorder("c", **options)


def told(run):
    return [m["content"] for m in run.messages if m["content"].startswith("Note:")]


def test_a_payment_that_no_checkpoint_had_is_told(store, world):
    run = recorder(store, world)
    run.add(ASKED)
    run.save(label="asked")
    pay(run, "call-1", "a1")

    run.resume(at="label:asked", discard=True)

    assert [effect.call_id for effect in run.left_behind] == ["call-1"]
    assert "a1" in told(run)[0]


@pytest.mark.parametrize("is_saved", [False, True])
def test_a_payment_that_was_discarded_is_told(store, world, is_saved):
    run = recorder(store, world)
    run.add(ASKED)
    if is_saved:
        run.save()
    pay(run, "call-1", "a1")

    run.resume(discard=True)

    assert [effect.call_id for effect in run.left_behind] == ["call-1"]
    assert "a1" in told(run)[0]


def test_what_was_undone_is_not_told_and_what_was_not_is(memory, world):
    run = recorder(memory, world)
    run.add(ASKED)
    pay(run, "call-1", "a1")
    run.llm_response(asking_to_pay("call-2", "b1"))
    with pytest.raises(KeyboardInterrupt):
        run.call("call-2", interrupt)

    run.resume(discard=True, compensate=True)

    assert world.cancelled == ["a1"]
    assert [effect.call_id for effect in run.left_behind] == ["call-2"]
    assert "a1" not in told(run)[0]


def interrupt(**arguments):
    raise KeyboardInterrupt


def test_nothing_is_told_if_nothing_was_done(store, world):
    run = recorder(store, world)
    run.add(ASKED)
    run.resume(discard=True)

    assert run.messages == []


def test_what_another_fork_does_is_not_told_because_of_metadata(store, world):
    run = recorder(store, world)
    run.add(ASKED)
    run.save()
    thread = store.conversations.thread("c")
    thread.fork("conversation:f")
    pay(store.conversations.recorder("f", tools=world.tools()), "call-1", "a1")

    thread.describe(metadata={"seen": True})

    assert told(recorder(store, world)) == []


def test_metadata_after_a_rewind_do_not_keep_it_from_being_told(store, world):
    run = recorder(store, world)
    run.add(ASKED)
    run.save(label="asked")
    pay(run, "call-1", "a1")
    run.save()
    thread = store.conversations.thread("c")
    thread.rewind("label:asked")

    thread.describe(metadata={"seen": True})

    assert "a1" in told(recorder(store, world))[0]


def test_a_fork_is_told_what_its_origin_did_later(store, world):
    run = recorder(store, world)
    run.add(ASKED)
    run.save(label="asked")
    pay(run, "call-1", "a1")
    run.save()
    store.conversations.thread("c").fork("conversation:f", "label:asked")

    forked = store.conversations.recorder("f", tools=world.tools())

    assert "a1" in told(forked)[0]
