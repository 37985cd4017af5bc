"""The search index on PostgreSQL: it is continued, and drops what is gone."""

from __future__ import annotations

import subprocess
from datetime import timedelta

import pytest

import holdfast
from holdfast import Retention
from holdfast.testing import FakeClock, raises
from holdfast.testing._search import places, user
from inner.engine import index
from inner.postgres import search_index
from support import databases, servers


@pytest.fixture(scope="module", params=databases.CORNERS, ids="-".join)
def corner(request):
    """A server, and a door to it."""
    return request.param


@pytest.fixture
def place(corner):
    with databases.place(servers.shared(corner[0])) as place:
        yield place


@pytest.fixture
def door(corner):
    return corner[1]


class Killed(BaseException):
    """What no code catches."""


def _talk(store, *names, text="needle"):
    for name in names:
        store.conversations.create(name, messages=[user(f"{text} in {name}")])


def _found(store, text="needle"):
    return [name for name, _ in places(store.search(text, limit=None))]


def test_the_next_search_goes_on_where_one_was_killed(place, door, monkeypatch):
    monkeypatch.setattr(index, "PAGE", 3)
    monkeypatch.setattr(index, "BATCH", 1)
    told = []

    def kill(done, total):
        if done == 6:
            raise Killed

    with place.open(door) as store:
        _talk(store, *"abcdefghij")
        with raises(Killed):
            store.search("needle", progress=kill)
        store.search("needle", progress=lambda *step: told.append(step))

        assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
        assert _found(store) == [*"jihgfedcba"]


def test_what_was_adopted_behind_the_last_search_is_found(place):
    def stop(done, total):
        if done == 1:
            raise Killed

    with holdfast.open(":memory:") as source, place.open() as store:
        _talk(source, "a", "b")
        source.conversations.add("a", user("more"))
        with raises(Killed):
            source.copy_to(store, progress=stop)
        assert _found(store) == ["a"]
        source.copy_to(store)

        assert _found(store) == ["a", "b"]


def test_what_was_deleted_leaves_the_index_also_after_its_tombstone_is_gone(place):
    clock = FakeClock()
    with place.open(clock=clock) as store:
        _talk(store, "a", "b")
        store.search("needle")
        store.conversations.delete("a")
        clock.advance(timedelta(days=31))
        store.prune(Retention(last=1))

        store.search("needle")

    for table in ("search_thread", "search_stretch"):
        assert place.run(f"select count(*) from hf.{table}") == [(1,)]


def _pages(store, text, limit):
    found = [store.search(text, limit=limit)]
    while found[-1].cursor is not None:
        found.append(store.search(text, limit=limit, after=found[-1].cursor))
    return [name for page in found for name, _ in places(page)]


def test_a_frequent_word_is_found_as_a_rare_one_is(place, door, monkeypatch):
    with place.open(door) as store:
        _talk(store, "a", "b", text="fox")
        _talk(store, *(f"{n}" for n in range(60)), text="hen")
        rare = _found(store, "fox"), _found(store, "hen")

        monkeypatch.setattr(search_index, "EVEN", 1e-9)
        # So that what is looked up does not reach far, and more pages follow.
        monkeypatch.setattr(search_index, "ENOUGH", 1)

        assert (_found(store, "fox"), _found(store, "hen")) == rare
        assert _pages(store, "hen", limit=7) == rare[1]
        assert rare[0] == ["b", "a"]
        assert len(rare[1]) == 60


def test_a_search_in_a_transaction_of_the_caller_lets_others_index(place):
    with place.open() as store, place.open(busy_timeout=2) as other:
        _talk(store, "a")
        with place.connect() as connection:
            within = store.using(connection)
            within.conversations.add("a", user("more of it"))
            assert _found(within, "more of") == ["a"]

            assert _found(other) == ["a"]
            assert place.run("select count(*) from hf.search_stretch") == [(1,)]
        connection.close()


def test_the_next_search_makes_the_index_that_a_killed_one_did_not(place, door):
    made = "select to_regclass('hf.search_stretch_text') is not null"
    with place.open(door) as store:
        _talk(store, "a", "b")
        assert _found(store) == ["b", "a"]
        assert place.run(made) == [(True,)]
        place.run("drop index hf.search_stretch_text")

        assert _found(store) == ["b", "a"]
        assert place.run(made) == [(True,)]


@pytest.mark.skipif(bool(servers.GIVEN), reason="pg_dump is that of a private server")
@pytest.mark.parametrize("extension", [[], ["--extension=pg_trgm"]])
def test_a_store_that_was_searched_is_restored_from_a_dump(corner, extension, tmp_path):
    binaries, url = servers.installations()[corner[0]], servers.shared(corner[0])
    dump = str(tmp_path / "dump")
    with databases.database(url) as original, databases.database(url) as restored:
        with holdfast.open(original) as store:
            _talk(store, "a")
            assert _found(store) == ["a"]
        what = ["--schema=holdfast", *extension, "--format=custom", f"--file={dump}"]
        subprocess.run([binaries / "pg_dump", *what, original], check=True)

        ended = subprocess.run(
            [binaries / "pg_restore", f"--dbname={restored}", dump],
            check=False,
            capture_output=True,
        )

        # Without the extension one statement fails, and the next search repeats it.
        assert (ended.returncode == 0) == bool(extension)
        with databases.DOORS[corner[1]](restored) as store:
            assert _found(store) == ["a"]
            _talk(store, "b")
            assert _found(store) == ["b", "a"]
            assert store.verify().ok
        made = "select to_regclass('hf.search_stretch_text') is not null"
        assert databases.Place(restored, "holdfast").run(made) == [(True,)]
