"""Importing an archive into PostgreSQL while others go on saving."""

from __future__ import annotations

import io

import pytest

import holdfast
from holdfast import Conflict
from holdfast.testing import raises
from support import databases, servers
from support.samples import LONGER
from support.stores import backend_of


@pytest.fixture
def place():
    with databases.place(servers.shared(servers.NAMES[0])) as place:
        yield place


@pytest.fixture
def archive():
    file = io.BytesIO()
    with holdfast.open(":memory:") as store:
        for n in range(3):
            store.thread("chat").append(texts=[f"{n} {LONGER}"])
        store.thread("chat").fork("fork").save({"n": 1})
        store.export_to(file)
    return file


def everything(store):
    """The numbers of all changes, page by page as a follower reads them."""
    found, cursor = [], 0
    while page := store.changes(cursor, limit=2):
        found += [change.seq for change in page]
        cursor = page.cursor
    return found


@pytest.mark.parametrize("door", databases.DOORS)
def test_others_save_while_an_archive_comes_in(place, archive, door):
    with place.open(door) as store, place.open() as rival:
        rival.thread("mine").save({"n": 0})
        followed = []

        def meanwhile(done, of):
            rival.thread("mine").save({"n": done})
            followed.extend(everything(rival))

        store.import_archive(archive, progress=meanwhile)
        rival.thread("mine").save({"n": "after"})

        again = io.BytesIO()
        store.export_to(again, threads=["chat"])
        seqs = everything(store)
        assert again.getvalue() == archive.getvalue()
        assert store.verify().ok
        assert seqs == sorted(seqs)
        assert len(seqs) == len(set(seqs))
        # No cursor that the feed gave meanwhile was beyond the imported checkpoints.
        brought = {c.seq for c in store.thread("chat").history(all=True)}
        assert max(followed) < min(brought)


def test_a_thread_that_is_made_meanwhile_stays_and_nothing_comes(place, archive):
    with place.open() as store, place.open() as rival:
        real = backend_of(store).admit

        async def late(admission):
            rival.thread("fork").save({"mine": 1})
            await real(admission)

        backend_of(store).admit = late
        with raises(Conflict, "thread_exists"):
            store.import_archive(archive)

        assert [thread.id for thread in store.threads()] == ["fork"]
        assert store.stats().segments == 0
        assert store.verify().ok
