"""Verifying, copying and exporting a store that others write to and prune meanwhile."""

import io
import os
from itertools import count

import pytest
from msgspec.structs import replace

import holdfast
from holdfast import Agent, Message, Retention, Store
from holdfast.backends import Layer
from holdfast.testing import raises
from inner.engine import copy_store, family_records
from support.samples import LONG
from support.stores import backend_of

# Saves of one call of `meanwhile` make the log grow by some megabytes.
SAVES, MOST = 400, 24 << 20
STAYING = {"t0", "t1", "t2", "t3", "t4", "t5", "fork"}


# --- the log of a file ----------------------------------------------------------------


def verify(reader, folder, progress):
    assert reader.verify(progress=progress).ok


def export(reader, folder, progress):
    reader.export_to(folder / "a.hfa", progress=progress)


def copy(reader, folder, progress):
    with holdfast.open(folder / "copy.db", durability="normal") as other:
        reader.copy_to(other, progress=progress)


@pytest.mark.parametrize("work", [verify, export, copy])
def test_the_log_stays_small_while_all_of_a_file_is_read(work, tmp_path):
    path, sizes = tmp_path / "a.db", []
    with (
        holdfast.open(path, durability="normal") as writer,
        holdfast.open(path, read_only=True) as reader,
    ):
        threads = [writer.thread(f"t{n}") for n in range(3)]

        def save(times):
            for n in range(times):
                threads[n % 3].append(log=[f"{n} {LONG}"])

        def meanwhile(done, of):
            save(SAVES)
            sizes.append(os.path.getsize(f"{path}-wal"))

        save(2400)
        work(reader, tmp_path, meanwhile)

    assert len(sizes) > 3
    assert max(sizes) < MOST


# --- what others change between two reads ---------------------------------------------


class Interrupted:
    """An inspection that lets another writer act before each of its calls."""

    def __init__(self, inspection, act):
        self._inspection, self._act = inspection, act
        self.moment = inspection.moment

    def __getattr__(self, name):
        call = getattr(self._inspection, name)

        async def act_and_call(*arguments, **options):
            self._act()
            return await call(*arguments, **options)

        return act_and_call


class Watched(Layer):
    """A layer whose inspections are interrupted."""

    def __init__(self, backend, act):
        super().__init__(backend)
        self._act = act

    async def inspect(self):
        return Interrupted(await self.backend.inspect(), self._act)


@pytest.fixture(autouse=True)
def _one_by_one(monkeypatch):
    monkeypatch.setattr(family_records, "FAMILIES", 1)


@pytest.fixture(params=["", "dir:"])
def busy(request, tmp_path):
    """A store, of which another one changes something before everything it reads."""
    url = f"{request.param}{tmp_path}/store"
    with (
        holdfast.open(url, durability="normal") as ours,
        holdfast.open(url, durability="normal") as theirs,
    ):
        for n in range(6):
            theirs.thread(f"t{n}").save({"log": [f"{n} {LONG}"], "text": LONG})
        theirs.thread("other").save({"text": LONG})
        theirs.thread("t0").fork("fork").append(log=[f"on a fork {LONG}"])
        turn = count()

        def act():
            n = next(turn)
            chat = theirs.thread(f"t{n % 6}")
            chat.append(log=[f"{n} {LONG}"])
            chat.save({"log": [f"new {n} {LONG}"], "text": f"{n} {LONG}"})
            if n % 3 == 2:
                theirs.prune(Retention(last=1))
            if n % 5 == 4:
                theirs.thread("other").delete()
                theirs.thread("other").save({"log": [LONG]}, expect=None)

        layer = Watched(backend_of(ours), act)
        yield Store(replace(ours.runner.context, backend=layer))


def test_nothing_is_reported_of_what_others_changed(busy):
    for _ in range(4):
        assert busy.verify().problems == ()


def test_what_is_wrong_is_reported_while_others_write(busy, tmp_path):
    with holdfast.open(":memory:") as other:
        busy.copy_to(other)
        db = backend_of(other).database.writer
        db.execute("update segment set data = zeroblob(3) where key % 2 = 0")

        assert not other.verify().ok


@pytest.mark.parametrize("largest", [0, 5000])
def test_a_copy_of_what_others_change_is_sound(largest, busy, monkeypatch):
    monkeypatch.setattr(copy_store, "CHECKPOINTS", largest)
    with holdfast.open(":memory:") as other:
        busy.copy_to(other)

        assert other.verify().problems == ()
        assert {thread.id for thread in other.threads()} >= STAYING
        assert all(other.thread(name).load()["log"] for name in STAYING)


def test_an_archive_of_what_others_change_is_sound(busy):
    archive = io.BytesIO()
    busy.export_to(archive)

    with holdfast.open(":memory:") as other:
        other.import_archive(archive)

        assert other.verify().problems == ()
        assert {thread.id for thread in other.threads()} >= STAYING


@pytest.mark.parametrize("kept", ["copy", "archive"])
def test_what_a_checkpoint_of_an_agent_pins_is_kept_with_it(kept, tmp_path):
    with holdfast.open(tmp_path / "a.db") as store, holdfast.open(":memory:") as other:
        store.agents.save(Agent(id="planner", name="Planner"))
        store.conversations.create(
            "talk", agent="planner", messages=[Message.user(LONG)]
        )
        names = map(str, count())

        def act():
            store.conversations.add("talk", Message.user(LONG))
            store.agents.checkpoint("planner", next(names))

        layer = Watched(backend_of(store), act)
        busy = Store(replace(store.runner.context, backend=layer))

        if kept == "copy":
            busy.copy_to(other)
        else:
            archive = io.BytesIO()
            busy.export_to(archive)
            other.import_archive(archive)

        listed = other.agents.checkpoints("planner")
        assert listed
        for checkpoint in listed:
            other.agents.restore("planner", checkpoint.id)


def test_a_segment_that_is_lost_is_told_of_and_not_looked_for_forever(tmp_path):
    with holdfast.open(tmp_path / "a.db") as store, holdfast.open(":memory:") as other:
        store.thread("chat").save({"text": LONG})
        db = backend_of(store).database.writer
        db.execute("delete from segment")

        for work in (store.copy_to, lambda _: store.export_to(io.BytesIO())):
            with raises(holdfast.Corrupt) as refused:
                work(other)
            assert "salvage() it first" in str(refused.error)
