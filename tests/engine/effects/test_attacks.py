"""The two attacks on agents that can be set back, against a recorder.

*Semantic rollback*: after a rewind the model asks for the same thing in other words, so
that no id shows that it was done. *Revived authority*: a rewind, fork or restore brings
back a permission that was used already.
"""

import pytest

import holdfast
from holdfast import Conflict
from holdfast.testing import raises
from support.payments import World, asking_to_pay, pay

ASKED = {"role": "user", "content": "Pay Bob 500, once."}


def asked(store, bank, **options):
    run = store.conversations.recorder("c", tools=bank.tools(), agent="a", **options)
    run.add(ASKED)
    run.save(label="asked")
    return run


def rewound(store):
    store.conversations.thread("c").rewind("label:asked")
    return "c"


def forked(store):
    store.conversations.thread("c").fork("conversation:f", "label:asked")
    return "f"


def undone(store):
    thread = store.conversations.thread("c")
    while thread.head.label != "asked":
        thread.undo()
    return "c"


def restored(store):
    store.agents.restore("a", store.agents.checkpoints("a")[-1])
    return "c"


SET_BACK = [rewound, forked, undone, restored]


@pytest.mark.parametrize("set_back", SET_BACK)
def test_semantic_rollback_pays_once(store, set_back):
    bank = World()
    store.agents.save(holdfast.Agent(id="a"))
    run = asked(store, bank)
    store.agents.checkpoint("a")
    pay(run, "call-1", "a1")
    run.save()

    again = store.conversations.recorder(set_back(store), tools=bank.tools())

    assert pay(again, "call-7", "another-ref") == {"receipt": "a1"}
    assert bank.paid == [("bob", 500, "a1")]


@pytest.mark.parametrize("set_back", SET_BACK)
def test_revived_authority_pays_once(store, set_back):
    bank = World()
    store.agents.save(holdfast.Agent(id="a"))
    run = asked(store, bank, effects="run")
    store.agents.checkpoint("a")
    pay_if_approved(store, run, "c", "call-1")
    run.save()

    id_ = set_back(store)
    again = store.conversations.recorder(id_, tools=bank.tools(), effects="run")
    with raises(PermissionError):
        pay_if_approved(store, again, id_, "call-7")

    assert len(bank.paid) == 1


def pay_if_approved(store, run, id_, call):
    """A loop that pays only with an approval, which allows one payment."""
    if not store.conversations.thread(id_).consume("approval:42"):
        raise PermissionError("the approval was used")
    pay(run, call, call)


def test_a_payment_that_may_have_been_made_is_not_made_again(store):
    bank = World()
    run = asked(store, bank)
    run.llm_response(asking_to_pay("call-1", "a1"))

    class Killed(BaseException):
        pass

    def die(to, amount, ref):
        bank.paid.append((to, amount, ref))
        raise Killed

    with raises(Killed):
        run.call("call-1", die)
    again = store.conversations.recorder("c", tools=bank.tools())
    again.resume(at="label:asked", discard=True)
    again.llm_response(asking_to_pay("call-7", "f9"))

    with raises(Conflict, "call_interrupted"):
        again.call("call-7")
    assert len(bank.paid) == 1
