"""A store copied to another is the same store, whatever keeps it."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys

import pytest

import holdfast
from holdfast import Agent, Message
from holdfast.backends import Prune, run
from holdfast.testing import blocking, raises
from inner.engine import LATEST
from support import databases, servers
from support.folders import PROGRAMS
from support.payments import World, pay
from support.samples import LONGER
from support.stores import backend_of

PROGRAM = PROGRAMS / "copy_store.py"


def fill(store):
    """A bit of everything that a store can hold."""
    store.agents.save(Agent(id="planner", name="Planner"))
    for n in range(6):
        messages = [Message.user(f"{n} {LONGER}")]
        store.conversations.create(f"talk {n}", agent="planner", messages=messages)
    store.agents.checkpoint("planner", "before")
    store.conversations.delete("talk 3")
    store.documents.save("notes/rust", LONGER)
    chat = store.thread("chat", owner="ann", metadata={"k": [1]})
    chat.save({"messages": [LONGER], "n": 1}, label="first", tags=["a", "b"])
    chat.append(messages=["more"])
    chat.record("call", {"refunded": 129})
    chat.rewind("@~1")
    chat.fork("what if").save({"messages": [LONGER, "else"]})
    store.thread("gone").save({"text": LONGER})
    store.thread("gone").delete()
    store.prune(holdfast.Retention(last=2))


def everything(store):
    """What can be seen of a store, but for how it is kept."""
    return {
        thread.id: (
            thread.kind,
            thread.owner,
            thread.agent,
            thread.metadata,
            thread.forked_from,
            thread.changed,
            store.thread(thread.id).load(),
            store.thread(thread.id).journal(),
            store.thread(thread.id).moves(limit=None).items,
            [
                (c.id, c.seq, c.step, c.digest, c.label, c.tags, c.saved_at, c.size)
                for c in store.thread(thread.id).history(limit=None, all=True)
            ],
        )
        for kind in (None, "pin")
        for thread in store.threads(kind=kind, limit=None)
    }


def test_a_copy_shows_everything_as_it_was(memory, tmp_path):
    fill(memory)

    with holdfast.open(tmp_path / "copy.db") as copy:
        copied = memory.copy_to(copy)

        assert everything(copy) == everything(memory)
        assert copy.changes().items == memory.changes().items
        assert copy.verify().ok
        assert copied.checkpoints == memory.stats().checkpoints
        assert copied.segments == memory.stats().segments


def test_a_copy_goes_on_like_the_original(memory, tmp_path):
    fill(memory)

    with holdfast.open(tmp_path / "copy.db") as copy:
        memory.copy_to(copy)
        for store in (memory, copy):
            store.thread("chat").undo()
            store.thread("chat").append(messages=["after"])
            store.agents.restore("planner", "before")

        assert copy.thread("chat").load() == memory.thread("chat").load()
        assert copy.thread("chat").step == memory.thread("chat").step
        assert copy.conversations.load("talk 3").message_count == 1
        assert copy.verify().ok


def test_a_deleted_thread_turns_late_writers_away_in_the_copy_too(memory, tmp_path):
    fill(memory)

    with holdfast.open(tmp_path / "copy.db") as copy:
        memory.copy_to(copy)

        with raises(holdfast.Conflict, code="thread_deleted"):
            copy.thread("gone").save({})


def test_a_compressed_copy_has_the_same_digests(memory, tmp_path):
    fill(memory)

    with holdfast.open(tmp_path / "copy.db", compress=True) as copy:
        memory.copy_to(copy)

        assert everything(copy) == everything(memory)
        assert copy.stats().stored_bytes < memory.stats().stored_bytes
        assert copy.verify().ok


def test_a_copy_is_made_by_the_awaited_door_too(tmp_path):
    ours = blocking(holdfast.open_async(tmp_path / "ours.db"))
    theirs = blocking(holdfast.open_async(tmp_path / "theirs.db"))

    with ours, theirs:
        fill(ours)
        ours.copy_to(theirs._target)  # type: ignore[attr-defined]
        ours.thread("chat").append(messages=["after"])
        ours.copy_to(theirs._target, update=True)  # type: ignore[attr-defined]

        assert everything(theirs) == everything(ours)


def test_copying_again_adds_nothing(memory, tmp_path):
    fill(memory)

    with holdfast.open(tmp_path / "copy.db") as copy:
        memory.copy_to(copy)
        before = everything(copy), copy.stats()
        again = memory.copy_to(copy)

        assert (everything(copy), copy.stats()) == before
        assert again.segments == 0
        assert again.skipped > 0


@pytest.mark.parametrize("key", [None, bytes(32)])
@pytest.mark.parametrize("kind", ["file", "server", "folder"])
def test_a_copy_is_brought_up_to_date(kind, key, memory, places):
    fill(memory)
    memory.thread("forgotten").save({"text": LONGER})
    memory.thread("as it was").save({"text": LONGER})

    with holdfast.open(places[kind], key=key) as copy:
        first = memory.copy_to(copy)
        memory.thread("chat").append(messages=["more"])
        memory.thread("chat").label("end")
        memory.thread("what if").record("call", {"refunded": 7})
        memory.thread("chat").fork("another")
        memory.thread("new").save({"text": LONGER})
        memory.thread("forgotten").delete()
        forgotten = Prune(at=0, forget_before=LATEST)
        run(backend_of(memory).prune(forgotten))
        with raises(holdfast.Conflict, code="not_empty"):
            memory.copy_to(copy)
        copied = memory.copy_to(copy, update=True)

        assert _seen(copy) == _seen(memory)
        assert copy.verify().ok
        assert 0 < copied.skipped < first.threads


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.thread("chat").record("another", 1),
        lambda store: store.thread("chat").describe(metadata={}),
        lambda store: store.thread("chat").fork("another"),
        lambda store: store.thread("chat").label("another"),
    ],
)
def test_what_has_changed_since_is_not_taken_for_copied(change, memory):
    memory.thread("chat").save({"n": 1})

    with holdfast.open(":memory:") as copy:
        memory.copy_to(copy)
        change(memory)

        with raises(holdfast.Conflict, code="not_empty"):
            memory.copy_to(copy)


def _use(copy):
    copy.thread("chat").record("another", 1)


def _delete(copy):
    copy.thread("chat").delete()


def _begin(copy):
    copy.thread("new").save({"n": 1})


@pytest.mark.parametrize("use", [_use, _delete, _begin])
def test_what_somebody_did_in_a_copy_is_not_undone(use, memory):
    memory.thread("chat").save({"n": 1})

    with holdfast.open(":memory:") as copy:
        memory.copy_to(copy)
        use(copy)
        before = _seen(copy)
        memory.thread("chat").save({"n": 2})
        memory.thread("other").save({"n": 2})

        for update in (False, True):
            with raises(holdfast.Conflict, code="not_empty"):
                memory.copy_to(copy, update=update)
        assert _seen(copy) == before


def test_a_copy_of_another_store_is_not_replaced(memory):
    memory.thread("chat").save({"n": 1})
    with holdfast.open(":memory:") as copy, holdfast.open(":memory:") as other:
        other.thread("chat").save({"n": 2})
        other.copy_to(copy)
        with raises(holdfast.Conflict, code="not_empty"):
            memory.copy_to(copy, update=True)

        assert _seen(copy) == _seen(other)


def test_a_store_that_holds_something_else_is_not_copied_into(memory, tmp_path):
    fill(memory)

    with holdfast.open(tmp_path / "copy.db") as other:
        other.thread("mine").save({"n": 1})

        with raises(holdfast.Conflict, code="not_empty"):
            memory.copy_to(other)
        assert [thread.id for thread in other.threads()] == ["mine"]


def test_progress_is_told_from_nothing_to_all(memory, tmp_path):
    fill(memory)
    told = []

    with holdfast.open(tmp_path / "copy.db") as copy:
        memory.copy_to(copy, progress=lambda done, of: told.append((done, of)))

    last = told[-1][1]
    assert told == [(done, last) for done in range(last + 1)]


def _kill_a_copy(source, target, *moment):
    killed = subprocess.run(
        [sys.executable, str(PROGRAM), source, target, *map(str, moment)], check=False
    )

    assert killed.returncode == -signal.SIGKILL


@pytest.mark.parametrize("families", [0, 3, 7])
def test_a_copy_that_was_killed_is_completed_by_copying_again(tmp_path, families):
    source, target = str(tmp_path / "ours.db"), str(tmp_path / "theirs.db")
    with holdfast.open(source, durability="normal") as store:
        fill(store)

    _kill_a_copy(source, target, families)

    with holdfast.open(source) as ours, holdfast.open(target) as theirs:
        assert theirs.verify().ok
        copied = ours.copy_to(theirs)
        assert copied.skipped == families
        assert everything(theirs) == everything(ours)
        assert theirs.verify().ok


# --- from one kind of store to another ------------------------------------------------

KINDS = ("file", "server", "folder")
CHANGES = list(itertools.permutations(KINDS, 2))


@pytest.fixture
def places(tmp_path):
    """The address of a new place of each kind, and of a second file."""
    with databases.database(servers.shared(servers.NAMES[-1])) as server:
        yield {
            "file": str(tmp_path / "store.db"),
            "server": server,
            "folder": f"dir:{tmp_path}/store",
            "end": str(tmp_path / "end.db"),
        }


def _seen(store):
    return everything(store), list(store.changes(limit=1000))


def test_a_store_that_went_through_all_kinds_is_what_it_was(places):
    told, stops = [], [*places.values()]
    with holdfast.open(stops[0]) as store:
        fill(store)
        original = _seen(store)

    for source, target in itertools.pairwise(stops):
        with holdfast.open(source) as ours, holdfast.open(target) as theirs:
            ours.copy_to(theirs, progress=lambda *now: told.append(now))

            assert _seen(theirs) == original
            assert theirs.verify().ok
    last = told[-1][1]
    assert last > 6
    assert told == [(done, last) for done in range(last + 1)] * 3


@pytest.mark.servers
def test_a_server_is_copied_to_another_by_the_awaited_door(places):
    with (
        databases.database(places["server"]) as another,
        databases.open_awaited(places["server"]) as ours,
        databases.open_awaited(another) as theirs,
        databases.open_awaited(places["file"]) as blocking_behind,
    ):
        fill(ours)
        ours.copy_to(theirs._target)

        assert _seen(theirs) == _seen(ours)
        assert theirs.verify().ok
        with raises(holdfast.Unsupported):
            ours.copy_to(blocking_behind._target)


@pytest.mark.parametrize(("source", "target"), CHANGES)
def test_a_copy_to_another_kind_that_was_killed_is_completed(source, target, places):
    with holdfast.open(places[source]) as store:
        fill(store)

    # In the middle of a family: its segments are there and nothing else.
    _kill_a_copy(places[source], places[target], 0, 7)

    told = []
    with (
        holdfast.open(places[source]) as ours,
        holdfast.open(places[target]) as theirs,
    ):
        copied = ours.copy_to(theirs, progress=lambda *now: told.append(now))
        assert 0 < copied.skipped < told[-1][1]
        assert _seen(theirs) == _seen(ours)
        assert theirs.verify().ok
        ours.thread("chat").append(messages=["after"])
        theirs.thread("chat").append(messages=["after"])
        assert theirs.thread("chat").load() == ours.thread("chat").load()


def test_a_damaged_store_is_not_copied_but_told_of(tmp_path):
    source = tmp_path / "ours.db"
    with holdfast.open(source) as store:
        fill(store)
    damaged = bytearray(source.read_bytes())
    place = damaged.rindex(LONGER[:20].encode())
    damaged[place] ^= 1
    source.write_bytes(damaged)

    with (
        holdfast.open(source) as ours,
        holdfast.open(tmp_path / "copy.db") as copy,
        raises(holdfast.Corrupt),
    ):
        ours.copy_to(copy)


def test_a_store_with_a_damaged_record_is_not_copied(memory):
    fill(memory)
    backend_of(memory).database.writer.execute(
        "update checkpoint set checksum = 0 where label = 'first'"
    )

    with holdfast.open(":memory:") as copy:
        with raises(holdfast.Corrupt) as refused:
            memory.copy_to(copy)

        assert "salvage() it first" in str(refused.error)
        assert list(copy.threads()) == []


def test_a_copy_has_the_ledger_and_the_grants(memory):
    bank = World()
    paying = memory.conversations.recorder("c", tools=bank.tools())
    paying.add({"role": "user", "content": "Pay."})
    paying.save(label="asked")
    pay(paying, "call-1", "a1")
    paying.save()
    assert memory.conversations.thread("c").consume("approval:42")
    paying.resume(at="label:asked")

    with holdfast.open(":memory:") as copy:
        memory.copy_to(copy)
        paying = copy.conversations.recorder("c", tools=bank.tools())

        assert pay(paying, "call-2", "f9") == {"receipt": "a1"}
        assert not copy.conversations.thread("c").consume("approval:42")


def test_a_copy_has_what_was_merged(memory):
    chat = memory.conversations.thread("c")
    memory.conversations.create("c", messages=[Message.user("Pay.")])
    fork = chat.fork("conversation:f")
    paying = memory.conversations.recorder("f", tools=World().tools())
    pay(paying, "call-1", "a1")
    paying.save()
    chat.merge(fork)

    with holdfast.open(":memory:") as copy:
        memory.copy_to(copy)

        [effect] = copy.conversations.thread("c").effects()
        assert effect.call_id == "call-1"
