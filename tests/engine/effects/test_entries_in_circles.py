"""Entries of the ledger that lead to one another, as recorders or an archive bring."""

import io
import signal
from datetime import timedelta
from itertools import pairwise

import pytest

import holdfast
from holdfast import Retention
from holdfast.backends import UNSET, Entry, Write, run
from holdfast.operations.values import codec
from support.payments import World, asking_to_pay, pay

LONG = 1_200


@pytest.fixture(autouse=True)
def _ends():
    """What goes round in a circle must not keep the tests from ending."""

    def give_up(*_):
        raise TimeoutError("it goes round in a circle")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(10)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def paid(store):
    """A conversation with a payment and checkpoints after it."""
    bank = World()
    talk = store.conversations.recorder("c", tools=bank.tools())
    talk.add({"role": "user", "content": "Pay."})
    talk.save(label="asked")
    pay(talk, "call-1", "a1")
    for n in range(4):
        talk.add({"role": "user", "content": f"{n}"})
        talk.save()
    return store.conversations.thread("c")


def bring(store, thread, entries):
    """Record what callers cannot, and take it through an archive to another store."""
    made = tuple(
        Entry(thread.id, "", key, codec.encode(value, key), 1)
        for key, value in entries.items()
    )
    write = Write(thread=thread.id, at=1, expect=UNSET, entries=made)
    run(store.runner.context.backend.commit([write]))
    archive = io.BytesIO()
    store.export_to(archive)
    archive.seek(0)
    other = holdfast.open(":memory:")
    other.import_archive(archive)
    return other


def test_a_call_is_found_after_many_recorders_took_over_from_one_another(memory):
    thread = paid(memory)
    names = [f"recorder-{n}" for n in range(LONG)]
    [begin] = [key for key in thread.journal() if key.startswith("call:1:begin:")]
    begun = {**thread.journal()[begin], "id": "call-0", "anchor": names[0]}
    entries = {
        "call:1:begin:0:call-0": begun,
        **{f"anchor:{a}:{b}": [b] for a, b in pairwise(names)},
        f"anchor:{names[-1]}": [thread.head.id],
    }

    with bring(memory, thread, entries) as store:
        there = store.conversations.thread("c")
        assert [e.call_id for e in there.effects()] == ["call-1", "call-0"]
        there.rewind("label:asked")
        behind = [e.call_id for e in there.effects(left_behind=True)]
        assert behind == ["call-1", "call-0"]


def test_a_call_whose_anchors_lead_in_a_circle_is_on_no_line(memory):
    thread = paid(memory)
    [begin] = [key for key in thread.journal() if key.startswith("call:1:begin:")]
    begun = {**thread.journal()[begin], "id": "call-0", "anchor": "one"}
    entries = {
        "call:1:begin:0:call-0": begun,
        "anchor:one": ["other"],
        "anchor:other": ["one"],
    }

    with bring(memory, thread, entries) as store:
        there = store.conversations.thread("c")
        assert [e.call_id for e in there.effects()] == ["call-1"]
        assert [e.call_id for e in there.effects(left_behind=True)] == ["call-0"]


def test_a_merge_of_what_comes_after_it_is_pruned(memory):
    thread = paid(memory)
    ids = [c.id for c in thread.history(None, order="oldest")]
    entries = {"merged:hostile": {"by": [ids[1]], "theirs": ids[3]}}

    with bring(memory, thread, entries) as store:
        bank, there = World(), store.conversations.thread("c")
        there.rewind(ids[0])
        store.prune(Retention(last=1, within=timedelta(0)))
        talk = store.conversations.recorder("c", tools=bank.tools())
        talk.llm_response(asking_to_pay("call-2", "a2"))
        assert (talk.call("call-2"), bank.paid) == ({"receipt": "a1"}, [])
        assert store.verify().ok
