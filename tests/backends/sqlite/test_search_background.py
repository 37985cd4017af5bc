"""The first search: a batch is written in a thread while the next one is read."""

from __future__ import annotations

import threading

import apsw
import pytest
from msgspec.structs import replace

import holdfast
from holdfast import Store
from holdfast.backends import Layer
from holdfast.errors import Closed, HoldfastError
from holdfast.testing._search import places, user
from inner.engine import index
from support.stores import backend_of

COUNT = 8


@pytest.fixture
def store(path, monkeypatch):
    """A file with as many batches as it has conversations."""
    monkeypatch.setattr(index, "BATCH", 1)
    with holdfast.open(path, busy_timeout=0.05) as store:
        for number in range(COUNT):
            messages = [user(f"needle{number}. {'and so on ' * 500}")]
            store.conversations.create(f"{number}", messages=messages)
        yield store


def indexed(store):
    """How many threads the index has, as every connection sees it."""
    with backend_of(store).database.reading() as db:
        return db.execute("select count(*) from search_thread").get


def writing_threads(store):
    """The threads that commit something from now on."""
    found = set()

    def add():
        found.add(threading.get_ident())
        return False

    backend_of(store).database.writer.set_commit_hook(add)
    return found


def test_a_batch_is_written_in_another_thread_and_none_is_left(store):
    before = threading.active_count()
    writers = writing_threads(store)

    found = store.search("needle3.")

    assert places(found) == [("3", 0)]
    assert len(writers) > 1
    assert threading.get_ident() in writers  # the first and the last one
    assert threading.active_count() == before


def test_later_searches_need_no_connection_for_reading(path, store):
    store.search("needle")

    assert [db.filename for db in apsw.connections()].count(path) == 1
    assert places(store.search("needle3.")) == [("3", 0)]
    assert [db.filename for db in apsw.connections()].count(path) == 1


def test_few_changes_are_indexed_without_a_thread(store, monkeypatch):
    store.search("needle")
    monkeypatch.undo()
    store.conversations.add("1", user("one more"))
    writers = writing_threads(store)

    found = store.search('"one more"')

    assert places(found) == [("1", 1)]
    assert writers == {threading.get_ident()}


def test_a_search_that_is_interrupted_has_written_what_it_began(store):
    before = threading.active_count()

    def interrupt(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.search("needle", progress=interrupt)

    assert threading.active_count() == before
    assert indexed(store) == 3
    assert len(store.search("needle", limit=None)) == COUNT
    assert indexed(store) == COUNT


def test_a_batch_that_cannot_be_written_ends_only_the_catching_up(path, store):
    rival = apsw.Connection(path)

    def occupy(done, total):
        if done == 0:
            # The first batch holds the lock until it is written.
            rival.set_busy_timeout(10_000)
            rival.execute("begin immediate")

    found = store.search("needle", limit=None, progress=occupy)
    rival.close()

    assert len(found) == COUNT
    assert indexed(store) == 1
    assert len(store.search("needle", limit=None)) == COUNT
    assert indexed(store) == COUNT


class Failing(Layer):
    """A layer whose batches fail after they were taken."""

    async def index(self, batch):
        def wait():
            raise HoldfastError("the key of the index is missing", code="no_key")

        await self.backend.index(batch)
        return wait if batch.threads else None


def test_what_goes_wrong_with_the_last_batch_is_raised_too(store):
    layer = Failing(backend_of(store))
    failing = Store(replace(store.runner.context, backend=layer))

    with pytest.raises(HoldfastError, match="the key of the index"):
        failing.search("needle")


def test_a_store_that_is_closed_meanwhile_says_so(path, store):
    with pytest.raises(Closed):
        store.search("needle", progress=lambda *_: store.close())

    with holdfast.open(path) as again:
        assert len(again.search("needle", limit=None)) == COUNT
        assert again.verify().problems == ()


def test_where_no_thread_can_be_started_the_caller_writes(store, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)

    assert places(store.search("needle5.")) == [("5", 0)]
    assert indexed(store) == COUNT
