"""A server that is killed, restarted, hung or replaced: the same store goes on.

Every fault once and through both doors; tests/thorough has the combinations.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

import holdfast
from holdfast import Busy, FormatMismatch, HoldfastError, Retention, Unsupported
from holdfast.testing import raises
from holdfast.testing.trials.scenario import problems_of
from inner.postgres import FORMAT
from support import databases, outages, servers
from support.cut_connection import Cable
from support.folders import PROGRAMS, TESTS
from support.outages import OURS, SOON, UNANSWERED


@pytest.fixture(scope="module")
def server():
    """A server of our own: it is going to suffer."""
    with servers.server(servers.NEWEST) as server:
        yield server


@pytest.fixture
def place(server):
    with databases.place(server.url) as place:
        yield place


@pytest.fixture(params=databases.DOORS)
def door(request):
    return request.param


# --- answers that are lost ------------------------------------------------------------

CALLS = {
    "save": lambda store: store.thread("a").save({"n": 1}),
    "append": lambda store: store.thread("a").append(log=[1]),
    "first save": lambda store: store.thread("new").save({"n": 1}, expect=None),
    "save with a journal": lambda store: store.thread("a").save({}, journal={"k": 1}),
    "record": lambda store: store.thread("a").record("key", 1),
    "fork": lambda store: store.thread("a").fork("fork"),
    "rewind": lambda store: store.thread("a").rewind("@~1"),
    "delete": lambda store: store.delete("a"),
    "prune": lambda store: store.prune(Retention(last=1)),
}


@pytest.fixture(scope="module")
def cable():
    url = servers.shared(servers.NAMES[-1])
    cable = Cable(int(url.rpartition(":")[2].partition("/")[0]))
    yield cable
    cable.close()


@pytest.fixture(scope="module")
def emptied():
    url = servers.shared(servers.NAMES[-1])
    with contextlib.closing(servers.Emptied(url, "at_the_cable")) as emptied:
        yield emptied


def _made(call, cable, emptied, door, cut=("answer",)):
    """What is there after a call whose cable was cut, and how many words it took."""
    emptied.empty()
    url = f"postgresql://holdfast@127.0.0.1:{cable.port}/postgres?sslmode=disable"
    options = {"schema": emptied.schema, "pool": (1, 1), "busy_timeout": 20}
    with databases.DOORS[door](f"{url}&gssencmode=disable", **options) as store:
        for n in range(3):
            store.thread("a").save({"n": n, "log": []})
        cable.arm(*cut)
        call(store)
        words = cable.disarm()
        assert problems_of(store) == []
        return _seen(store), words


def _seen(store):
    """What a store holds, but for the ids and numbers that attempts have used up."""
    return {
        name: (
            store.thread(name).head and store.thread(name).load(),
            store.thread(name).step,
            store.thread(name).journal(),
            [move.kind for move in store.thread(name).moves(limit=None)],
        )
        for name in ("a", "new", "fork")
    }


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_made_once_when_its_last_word_is_lost(call, cable, emptied, door):
    whole, words = _made(CALLS[call], cable, emptied, door)

    unheard, _ = _made(CALLS[call], cable, emptied, door, ("request", words))
    unanswered, _ = _made(CALLS[call], cable, emptied, door, ("answer", words))

    assert words > 0
    assert unheard == whole
    assert unanswered == whole


def test_an_archive_is_taken_in_once_when_the_last_answer_is_lost(cable, emptied, door):
    archive = io.BytesIO()
    with holdfast.open(":memory:") as store:
        store.thread("new").save({"n": 1, "text": "x" * 1000})
        store.export_to(archive)

    def take_in(store):
        store.import_archive(archive)

    whole, words = _made(take_in, cable, emptied, door)
    found = [
        _made(take_in, cable, emptied, door, ("answer", n))[0]
        for n in range(words - 2, words + 1)
    ]

    assert whole["new"][1] == 1
    assert found == [whole] * 3


def _is_waiting(place):
    """True if a session has committed and waits for a standby, so has no answer."""
    return place.run(f"select pid {OURS} and wait_event = 'SyncRep'")


def test_a_save_whose_session_is_killed_before_it_answers_is_made_once(
    server, place, door
):
    with place.open(door, busy_timeout=30) as store, ThreadPoolExecutor(1) as pool:
        store.thread("a").save({"n": 0})
        with outages.without_standby(server):
            saving = pool.submit(store.thread("a").save, {"n": 1}, id="mine")
            outages.wait_until(lambda: _is_waiting(place))
            [(pid,)] = _is_waiting(place)
            place.run("select pg_terminate_backend(%s, 10000)", (pid,))
            outages.wait_until(lambda: _is_waiting(place))

            # It is there, but not where it has to be before it is acknowledged.
            assert not saving.done()

        assert saving.result().id == "mine"
        assert [c.id for c in store.thread("a").history(1)] == ["mine"]
        assert store.thread("a").step == 2


def test_a_save_that_never_reached_the_standby_is_not_acknowledged(server, place, door):
    with place.open(door) as store, place.open(door, busy_timeout=0.5) as hasty:
        store.thread("a").save({"n": 0})
        with outages.without_standby(server):
            for _ in range(2):
                with raises(Busy):
                    hasty.thread("a").save({"n": 1}, id="mine")

        repeated = store.thread("a").save({"n": 1}, id="mine")

        assert repeated.step == 2
        assert [c.id for c in store.thread("a").history(1)] == ["mine"]
        assert store.thread("a").step == 2


# --- connections and servers that die -------------------------------------------------


def test_connections_that_died_in_the_pool_are_not_noticed_by_callers(place, door):
    with place.open(door, pool=(4, 4)) as store, ThreadPoolExecutor(4) as pool:
        threads = [store.thread(f"t{n}") for n in range(4)]
        list(pool.map(lambda thread: thread.save({"n": 0}), threads))
        for _ in range(2):
            place.run(f"select pg_terminate_backend(pid, 10000) {OURS}")

            assert store.thread("t0").load() == {"n": 0}
            store.thread("t1").append(log=[1])


def test_a_store_goes_on_soon_after_its_server_is_back(server, place, door):
    with place.open(door, busy_timeout=SOON) as store, ThreadPoolExecutor(2) as pool:
        store.thread("a").save({"n": 0})
        server.stop()
        try:
            saving = pool.submit(store.thread("a").save, {"n": 1}, id="mine")
            loading = pool.submit(store.thread("a").load)
            for failed in (saving, loading):
                with raises(HoldfastError, "connection_lost"):
                    failed.result()
        finally:
            server.start()

        # It would be told that the connection is lost if it took longer.
        saved = store.thread("a").save({"n": 1}, id="mine")

        assert saved.step == 2
        assert store.thread("a").load() == {"n": 1}


def test_no_acknowledged_save_is_lost_by_a_restart_under_load(server, place):
    with place.open(busy_timeout=30) as one, place.open("awaited") as two:
        with outages.Load([one, two], 6) as load:
            load.wait_for(3)
            server.stop()
            server.start()
            load.wait_for(3)

        load.check(one)
        load.check(two)


def test_who_waits_for_changes_goes_on_waiting_after_a_restart(server, place, door):
    with place.open(door, busy_timeout=30) as store, place.open() as other:
        other.thread("a").save({"n": 0})
        cursor = store.changes().cursor
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(store.changes, cursor, timeout=60)
            server.stop()
            server.start()
            saved = other.thread("a").save({"n": 1})

            assert [change.subject for change in waiting.result()] == [saved.id]


# --- a server that hangs --------------------------------------------------------------

# Seconds: more than any timeout here on a crowded machine, less than a call that hangs.
MUCH_LATER = 30
# What works on all of the tables first asks whether the server lives.
PATIENT = {
    "search": lambda store: store.search("word"),
    "stats": lambda store: store.stats(),
    "verify": lambda store: store.verify(),
    "compact": lambda store: store.compact(),
}
IMPATIENT = CALLS | {
    "load": lambda store: store.thread("a").load(),
    "head": lambda store: store.thread("a").head,
    "history": lambda store: store.thread("a").history(),
    "changes": lambda store: store.changes(),
    "threads": lambda store: store.threads(),
}


def test_every_call_ends_within_its_timeout_when_the_server_hangs(server, place, door):
    # Half of the calls have a connection, the others wait for one.
    calls = IMPATIENT | PATIENT
    options = {"busy_timeout": 0.5, "pool": (8, 8)}
    with place.open() as patient:
        said = [{"role": "user", "content": "word"}]
        patient.conversations.create("c", messages=said)
        for name in ("a", *(f"t{n}" for n in range(16))):
            patient.thread(name).save({"n": 0})
    with place.open(door, **options) as store, ThreadPoolExecutor(len(calls)) as pool:
        outages.wait_until(lambda: _has_all(place, 8))
        with outages.hung(server):
            trials = {
                name: pool.submit(outages.outcome, call, store)
                for name, call in calls.items()
            }
            found = {name: trial.result() for name, trial in trials.items()}
        outages.wait_until(lambda: _saves(store))

    assert {code for code, _ in found.values()} <= UNANSWERED
    assert max(seconds for _, seconds in found.values()) < MUCH_LATER


def _has_all(place, count):
    """Whether a pool has made all its connections."""
    return len(place.run(f"select pid {OURS}")) >= count


def _saves(store):
    """Whether a store can be saved to; it may be told to wait first."""
    with contextlib.suppress(HoldfastError):
        return store.thread("b").save({"n": 1}, id="after").step == 1


def test_a_store_cannot_be_opened_on_a_server_that_hangs(server, place, door):
    place.open().close()

    with outages.hung(server):
        code, seconds = outages.outcome(
            lambda place: place.open(door, busy_timeout=0.5), place
        )

    assert code in UNANSWERED
    assert seconds < MUCH_LATER


def _sockets_to(port):
    """The numbers of this process's open sockets that lead to a port."""
    for connection in psutil.Process().net_connections("tcp"):
        if connection.raddr and connection.raddr.port == port:
            yield connection.fd


def test_a_save_is_made_when_its_socket_breaks_in_an_unusual_way(server, place, door):
    """libpq takes some errors of a socket for passing, and keeps the connection."""
    with place.open(door, pool=(1, 1)) as store, socket.socket() as unconnected:
        store.thread("a").save({"n": 1})
        for number in list(_sockets_to(server.port)):
            os.dup2(unconnected.fileno(), number)

        assert store.thread("a").save({"n": 2}).step == 2
        assert store.thread("a").load() == {"n": 2}


# --- a standby that takes over --------------------------------------------------------


def test_no_acknowledged_save_is_lost_when_a_standby_takes_over():
    with outages.pair(servers.NEWEST) as (primary, standby):
        place = databases.Place(outages.either(primary, standby))
        options = {"pool": (1, 4), "busy_timeout": 30}
        alone = databases.Place(standby.url, place.schema)
        with place.open(**options) as one, place.open("awaited", **options) as two:
            one.thread("a").save({"n": 1})
            with raises(Unsupported, "read_only"):
                alone.open(busy_timeout=60)
            with alone.open(read_only=True) as follower:
                assert follower.thread("a").load() == {"n": 1}
            with outages.Load([one, two], 8) as load:
                load.wait_for(5)
                primary.kill()
                standby.promote()
                load.wait_for(5)

            assert load.errors == []
            load.check(one)
            load.check(two)


# --- two versions side by side --------------------------------------------------------


@pytest.fixture
def newer(tmp_path):
    """The next version of the package, whose tables have a column more."""
    folder = tmp_path / "newer"
    shutil.copytree(Path(holdfast.__file__).parent, folder / "holdfast")
    backend = folder / "holdfast" / "backends" / "postgres"
    (backend / "9999_note.sql").write_text("alter table hf.thread add note text;\n")
    module = backend / "_migrations.py"
    text = module.read_text()
    counted = "FORMAT = len(MIGRATIONS)"
    assert counted in text
    module.write_text(
        text.replace(counted, f'MIGRATIONS += ("9999_note.sql",)\n{counted}')
    )
    return folder


def test_an_older_version_is_stopped_when_newer_ones_change_the_tables(newer, place):
    program = str(PROGRAMS / "open_together.py")
    paths = os.pathsep.join([str(newer), str(TESTS)])
    with place.open() as one, place.open("awaited") as two:
        before = one.thread("t").save({"n": 1})
        two.thread("u").save({"n": 1})
        ran = subprocess.run(
            [sys.executable, program, place.url, place.schema, "4"],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": paths},
        )

        reports = [json.loads(line) for line in ran.stdout.splitlines()]
        assert [report["error"] for report in reports] == [None] * 4
        for store in (one, two):
            for change in (
                lambda t: t.save({"n": 2}),
                lambda t: t.record("k", 1),
                lambda t: t.label("l"),
                lambda t: t.fork("f"),
                lambda t: t.delete(),
            ):
                with raises(FormatMismatch) as raised:
                    change(store.thread("t"))
                assert "start this program again" in str(raised.error)
            assert store.thread("t").head == before
            assert store.thread("t").load() == {"n": 1}
        formats = place.run("select format from hf.migration order by 1")
        assert formats == [(n + 1,) for n in range(FORMAT + 1)]
        with raises(FormatMismatch):
            place.open()
