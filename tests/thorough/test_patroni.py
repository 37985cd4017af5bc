"""Writers on a Patroni cluster whose leader is killed, hangs, or hands over.

Each prints how many saves were acknowledged and how long a writer had to wait.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from holdfast import Busy, HoldfastError
from holdfast.testing import raises
from support import databases, outages, patroni
from support.outages import SLACK, SOON

pytestmark = pytest.mark.timeout(600)
WRITERS = 4
# Longer than a cluster needs to elect a leader, and the default.
PATIENT, USUAL = 60, 5


@pytest.fixture(scope="module")
def cluster():
    with patroni.cluster() as cluster:
        yield cluster


@pytest.fixture
def tell(capsys):
    """Prints figures although the test succeeds."""

    def write(text):
        with capsys.disabled():
            sys.stdout.write(f"\n{text} ")

    return write


@contextlib.contextmanager
def writers(cluster, seconds):
    """Half of them blocking, half of them awaited; checked when they have ended."""
    place = databases.Place(cluster.url)
    with contextlib.ExitStack() as stack:
        stores = [
            stack.enter_context(place.open(door, busy_timeout=seconds))
            for door in databases.DOORS
        ]
        with following(stores[-1]) as told, outages.Load(stores, WRITERS) as load:
            load.wait_for(10)
            yield load
            load.wait_for(10)
        for store in stores:
            load.check(store)
        for name in load.names:
            expected = [f"{name}-{n}" for n in range(store.thread(name).step)]
            assert [id for id in told if id.startswith(f"{name}-")] == expected


@contextlib.contextmanager
def following(store):
    """The ids that the feed has told, complete when this has ended."""
    told, stopping = [], threading.Event()

    def follow():
        cursor, is_over = 0, False
        while not is_over:
            was_stopping = stopping.is_set()
            with contextlib.suppress(HoldfastError):
                page = store.changes(cursor, timeout=0.2)
                cursor = page.cursor
                told.extend(change.subject for change in page)
                is_over = was_stopping and not page

    with ThreadPoolExecutor(1) as pool:
        followed = pool.submit(follow)
        try:
            yield told
        finally:
            stopping.set()
            followed.result()


def wait_for_another(cluster, old):
    """Wait until another node than the old leader can be written to."""
    others = [node for node in cluster.nodes if node is not old]
    outages.wait_until(lambda: any(n.is_writable() for n in others), cluster.logs)
    return time.monotonic()


def figures(what, load, took):
    codes = Counter(error.code for error in load.errors)
    return (
        f"{what}: {load.acknowledged.total()} acknowledged, none lost, none twice;"
        f" longest wait {load.longest:.1f} s, errors {dict(codes)};"
        f" all wrote again {took:.1f} s after they could"
    )


@pytest.mark.parametrize("turn", range(3))
def test_no_acknowledged_save_is_lost_with_a_killed_leader(cluster, tell, turn):
    cluster.wait_until_whole()
    with writers(cluster, PATIENT) as patient, writers(cluster, USUAL) as usual:
        old = cluster.leader
        old.kill()
        elected = wait_for_another(cluster, old)
        patient.wait_for(1)
        usual.wait_for(1)
        took = time.monotonic() - elected
        old.start()
        cluster.wait_until_whole()

    tell(figures("leader killed, patient", patient, took))
    tell(figures("leader killed, usual", usual, took))
    # Who waits longer than an election notices nothing but the time.
    assert patient.errors == []
    assert {error.code for error in usual.errors} == {"connection_lost"}
    assert took < SOON + SLACK


def test_no_acknowledged_save_is_lost_with_a_leader_that_hangs(cluster, tell):
    cluster.wait_until_whole()
    with writers(cluster, USUAL) as usual:
        old = cluster.leader
        with old.hung():
            elected = wait_for_another(cluster, old)
            usual.wait_for(1)
            took = time.monotonic() - elected
        cluster.wait_until_whole()

    tell(figures("leader hung", usual, took))
    codes = {error.code for error in usual.errors}
    assert codes <= {"connection_lost", "busy", "no_answer"}
    assert took < USUAL + SOON + SLACK


def test_a_leader_that_does_not_know_that_it_was_replaced_acknowledges_nothing(cluster):
    cluster.wait_until_whole()
    place = databases.Place(cluster.url)
    with place.open() as store:
        store.thread("a").save({"n": 1})
    old = cluster.leader
    with old.hung():
        wait_for_another(cluster, old)
        old.wake_server()
        with databases.Place(old.url, place.schema).open() as replaced:
            assert replaced.thread("a").load() == {"n": 1}
            with raises(Busy):
                replaced.thread("a").save({"n": 2}, id="mine")
            with raises(Busy):
                replaced.thread("a").save({"n": 2}, id="mine")
    cluster.wait_until_whole()

    with place.open() as store:
        assert store.thread("a").load() == {"n": 1}
        assert store.thread("a").save({"n": 3}).step == 2


def test_writers_go_on_when_the_synchronous_standby_is_lost(cluster, tell):
    """No save is acknowledged until the leader has chosen another one."""
    cluster.wait_until_whole()
    [standby] = [node for node in cluster.nodes if node.has_role("synchronous")]
    with writers(cluster, PATIENT) as patient:
        standby.kill()
        killed = time.monotonic()
        patient.wait_for(1)
        took = time.monotonic() - killed
        standby.start()
        cluster.wait_until_whole()

    tell(figures("standby killed", patient, took))
    assert patient.errors == []


def test_writers_go_on_when_a_leader_hands_over(cluster, tell):
    cluster.wait_until_whole()
    with writers(cluster, PATIENT) as patient, writers(cluster, USUAL) as usual:
        old = cluster.leader
        cluster.hand_over(old)
        elected = wait_for_another(cluster, old)
        patient.wait_for(1)
        usual.wait_for(1)
        took = time.monotonic() - elected
        cluster.wait_until_whole()

    tell(figures("handed over", patient, took))
    assert patient.errors == []
    assert usual.errors == []
    assert took < SOON + SLACK


def test_writers_wait_while_the_nodes_cannot_agree(cluster, tell):
    """Without etcd no node may be the leader, and there is only reading."""
    cluster.wait_until_whole()
    new = databases.Place(cluster.url)
    with writers(cluster, PATIENT) as patient, ThreadPoolExecutor(1) as pool:
        with cluster.without_etcd():
            outages.wait_until(
                lambda: not any(node.is_writable() for node in cluster.nodes)
            )
            opening = pool.submit(new.open, busy_timeout=PATIENT)
        elected = wait_for_another(cluster, None)
        patient.wait_for(1)
        took = time.monotonic() - elected
        with opening.result() as store:
            assert store.thread("a").save({"n": 1}).step == 1
        cluster.wait_until_whole()

    tell(figures("etcd hung", patient, took))
    assert patient.errors == []
    assert took < SOON + SLACK
