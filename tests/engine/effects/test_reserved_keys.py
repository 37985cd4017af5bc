"""The journal keys of the ledger: no caller has them; what is wrong there is damage.

Earlier versions let callers record under any key, and an archive may have anything.
"""

import contextlib

import pytest

import holdfast
from holdfast import Conflict, Corrupt, Unstorable
from holdfast.backends import NEW_THREAD
from holdfast.operations.threads import journal
from holdfast.testing import raises
from inner.engine import RESERVED, CallEnd, settle
from inner.views import journal_of
from support.payments import World, asking_to_pay, make, pay


def planned(store, change):
    with store.transaction() as tx:
        change(tx.thread("new"))


DOORS = [
    lambda store, key: store.thread("c").record(key, {"token": "x"}, replace=True),
    lambda store, key: store.thread("c").record_all({"fine": 1, key: 1}),
    lambda store, key: store.thread("c").record(key, 1, checkpoint="later"),
    lambda store, key: store.thread("c").forget("fine", key),
    lambda store, key: store.thread("c").save({}, once={key: 1}),
    lambda store, key: store.thread("c").extend({}, journal={key: 1}),
    lambda store, key: planned(store, lambda thread: thread.record_all({key: 1})),
    lambda store, key: planned(store, lambda thread: thread.save({}, once={key: 1})),
]


def test_no_door_records_or_forgets_under_the_keys_of_the_ledger(store):
    thread = store.thread("c")
    head = thread.save({"n": 1})
    assert thread.consume("approval:42")

    for door in DOORS:
        for prefix in RESERVED:
            with raises(Unstorable) as refused:
                door(store, f"{prefix}approval:42")
            assert "choose another key" in str(refused.error)

    assert not thread.consume("approval:42")
    assert thread.head == head
    assert list(thread.journal()) == ["grant:approval:42"]
    assert store.thread("new").head is None
    assert thread.record("granted:approval", 1) == 1


def recorded_earlier(store, thread, values):
    """Record under any key, as callers of earlier versions could."""
    where = journal.JournalPlace(thread, NEW_THREAD, None, replace=True)
    entries = where.own_entries(store.runner.context, values)
    store.runner.run(journal.record, where, entries)


PLACE = {"thread": "t", "key": "k", "attempt": "first"}
WRONG = ["text", 7, [1], {}, {"id": 1, "name": 2, "token": 3, "replays": "q"}, None]


def wrongly(key, value):
    """An entry with a value that is none of the ledger's."""
    fields = {"id": "call-1", "name": "pay", "token": "t", "arguments": "a"}
    return {
        "begin": {key: value},
        "place": {key: fields | {"replays": PLACE}},
        "part": {key: {"at": -1, "messages": 5, "run": [], "next": 1, "after": 2}},
    }


def test_a_wrong_entry_of_the_ledger_is_an_error_of_holdfast_at_every_reader(memory):
    bank = World()
    run = memory.conversations.recorder("c", tools=bank.tools())
    run.add({"role": "user", "content": "Pay."})
    run.save()
    pay(run, "call-1", "a1")
    thread = memory.conversations.thread("c")
    ours = thread.journal()
    thread.consume("x")
    readers = [
        thread.effects,
        lambda: thread.consume("x"),
        lambda: run.call("call-1"),
        lambda: memory.conversations.recorder("c", tools=bank.tools()).call("call-1"),
        lambda: run.resolve("call-1", "paid"),
        lambda: memory.runner.run(settle, thread.id, "call-1", CallEnd("done")),
        lambda: memory.runner.run(journal_of, thread.id),
        lambda: memory.prune(holdfast.Retention(last=1)),
        lambda: thread.fork("f"),
    ]

    for key in [*ours, "grant:x", "pending:-:000001", "anchor:a", "merged:b"]:
        for wrong in WRONG:
            for values in wrongly(key, wrong).values():
                recorded_earlier(memory, thread.id, values)
                for reader in readers:
                    with contextlib.suppress(holdfast.HoldfastError):
                        reader()
        whole = ours.get(key, {"by": [], "theirs": None})
        recorded_earlier(memory, thread.id, {key: whole})

    assert bank.paid == [("bob", 500, "a1")]


def test_an_entry_of_a_call_that_is_damaged_does_not_let_the_call_be_made_again(memory):
    bank = World()
    run = memory.conversations.recorder("c", tools=bank.tools())
    pay(run, "call-1", "a1")
    run.save()
    thread = memory.conversations.thread("c")
    [begun] = [key for key in thread.journal() if ":begin:" in key]
    recorded_earlier(memory, thread.id, {begun: "nothing"})

    with raises(Corrupt):
        make(memory.conversations.recorder("c", tools=bank.tools()), "call-1")
    with raises(Corrupt):
        thread.effects()

    assert len(bank.paid) == 1


def test_other_keys_of_callers_of_earlier_versions_do_no_harm(memory):
    thread = memory.thread("t")
    thread.save({"n": 1})
    mine = {"effect:x": 1, "call:9": "a", "call:1:end:z": {"id": 7}, "anchor:": 2}
    recorded_earlier(memory, "t", mine | {"pending:ann": {"at": 5}})

    memory.prune(holdfast.Retention(last=1))

    assert thread.effects() == []
    assert thread.journal().keys() == {*mine, "pending:ann"}
    found = memory.runner.run(journal_of, "t")
    assert [entry.key for entry in found.entries] == [
        "effect:x",
        "call:9",
        "pending:ann",
    ]


def test_a_call_that_returns_after_it_was_recorded_as_failed_is_a_conflict(memory):
    def pay(**_):
        thread = memory.conversations.thread("c").id
        memory.runner.run(settle, thread, "call-1", CallEnd(error="looks stuck"))
        return "paid"

    run = memory.conversations.recorder("c", tools={"pay": pay})
    run.llm_response(asking_to_pay("call-1", "a1"))

    with pytest.raises(Conflict, match="looks stuck") as refused:
        run.call("call-1")
    assert refused.value.code == "call_ended"
