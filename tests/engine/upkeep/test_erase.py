"""Nothing of what was erased is in any file, also if the process was killed."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

import holdfast
from holdfast.backends import Layer, run
from holdfast.testing import raises
from inner.engine import ErasureRequest, erase
from inner.sqlite import snapshot
from support.canaries import AGENT, CANARY, KEPT, OWNER, SUBJECTS, fill
from support.stores import backend_of

KEY = bytes(range(32))
PLACES = {
    "file": ("{}/store.db", {}),
    "compressed": ("{}/store.db", {"compress": True}),
    "encrypted": ("{}/store.db", {"key": KEY}),
    "folder": ("dir:{}/store", {}),
}
LATE_WRITES = 100


def left_in(folder):
    """The files that have a canary in them, or in their names."""
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    named = [path for path in files if CANARY in str(path.relative_to(folder))]
    return named + [p for p in files if CANARY.encode() in p.read_bytes()]


@pytest.mark.parametrize("place", PLACES)
def test_no_byte_of_what_was_erased_is_in_any_file(place, tmp_path):
    address, options = PLACES[place]
    url = address.format(tmp_path)
    with holdfast.open(url, durability="normal", **options) as store:
        fill(store)
        late = store.thread(f"chat of {CANARY}", owner=OWNER)
        planned = [store.erase(**subject, dry_run=True) for subject in SUBJECTS]
        receipts = [store.erase(**subject) for subject in SUBJECTS]

        assert [r.threads for r in receipts] == [r.threads for r in planned]
        assert min(r.entries for r in receipts[:2]) > 0
        assert left_in(tmp_path) == []
        for _ in range(LATE_WRITES):
            with raises(holdfast.Conflict, "thread_deleted"):
                late.append(messages=[CANARY])
        assert list(store.search(CANARY)) == []
        assert store.verify().problems == ()

    assert left_in(tmp_path) == []
    with holdfast.open(url, **options) as store:
        restored = store.agents.restore("bot", "before")
        assert restored.checkpoint.name == "before"
        assert store.thread("kept").load() == KEPT
        assert {t.agent for t in store.threads(limit=None)} == {None, "bot"}


class Killed(BaseException):
    """The process died here."""


class KilledAt(Layer):
    """A backend whose process dies before or after one of the verbs that change it."""

    def __init__(self, backend, at, *, before):
        super().__init__(backend)
        self.at, self.before, self.calls = at, before, 0

    async def prune(self, plan):
        return await self._counted(super().prune, plan)

    async def setting(self, name, value=None, *, replace=False):
        if value is None:
            return await super().setting(name)
        return await self._counted(super().setting, name, value, replace=replace)

    async def index(self, batch):
        return await self._counted(super().index, batch)

    async def scrub(self):
        return await self._counted(super().scrub)

    async def _counted(self, verb, *args, **options):
        self.calls += 1
        if self.before and self.calls == self.at:
            raise Killed
        result = await verb(*args, **options)
        if self.calls == self.at:
            raise Killed
        return result


def _erase_killed(store, at, *, before):
    """Whether erasing an agent was killed at a verb."""
    context = store.runner.context
    layer = KilledAt(context.backend, at, before=before)
    try:
        run(erase(replace(context, backend=layer), ErasureRequest(agent=AGENT)))
    except Killed:
        return True
    return False


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("place", ["file", "folder"])
def test_the_next_opening_finishes_what_was_interrupted(place, before, tmp_path):
    address, options = PLACES[place]
    points = unfinished = 0
    while True:
        points += 1
        folder = tmp_path / str(points)
        folder.mkdir()
        url = address.format(folder)
        with holdfast.open(url, durability="normal", **options) as store:
            store.agents.save(holdfast.Agent(id=AGENT, name=CANARY))
            store.conversations.create(CANARY, agent=AGENT, title=CANARY)
            store.agents.checkpoint(AGENT, CANARY)
            store.search(CANARY)
            store.delete(store.thread(f"gone {CANARY}").save({"n": CANARY}).thread)
            store.thread("kept").save(KEPT)
            was_killed = _erase_killed(store, points, before=before)
        with holdfast.open(url, read_only=True) as store:
            told = [p for p in store.verify().problems if "interrupted" in p.what]
        has_begun = points > 1 or not before
        assert not told or (was_killed and has_begun)
        unfinished += len(told)
        with holdfast.open(url) as store:
            assert store.verify().problems == ()
            assert store.thread("kept").load() == KEPT
            assert (store.stats().agents == 0) == has_begun
        assert (left_in(folder) == []) == has_begun
        if not was_killed:
            break

    assert unfinished == points - 2 > 4


def test_a_reader_in_the_way_is_told_and_the_next_opening_finishes(tmp_path):
    url = str(tmp_path / "store.db")
    with holdfast.open(url, busy_timeout=0.1) as store:
        store.thread(CANARY).save({"n": CANARY * 50})
        with (
            holdfast.open(url) as other,
            backend_of(other).database.reading() as reader,
            snapshot(reader),
        ):
            reader.execute("select count(*) from thread").fetchall()
            with raises(holdfast.Busy) as busy:
                store.erase(thread=CANARY)
            with pytest.warns(RuntimeWarning, match="cannot be finished"):
                holdfast.open(url, busy_timeout=0.1).close()

    assert "what was erased before stays erased" in busy.error.message
    holdfast.open(url).close()
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("place", ["file", "encrypted"])
def test_copies_and_archives_have_nothing_of_what_was_erased(place, tmp_path):
    address, options = PLACES[place]
    with (
        holdfast.open(address.format(tmp_path), **options) as store,
        holdfast.open(tmp_path / "copy.db", **options) as copy,
        holdfast.open(":memory:") as imported,
    ):
        store.thread("kept").save(KEPT)
        store.thread("kept").fork(CANARY).save({"n": CANARY})
        store.thread("gone", owner=OWNER).save({"n": CANARY})
        store.erase(thread=CANARY)
        store.erase(owner=OWNER)
        store.copy_to(copy)
        store.export_to(tmp_path / "archive")
        imported.import_archive(tmp_path / "archive")

        assert b"erased" not in (tmp_path / "archive").read_bytes()
        for found in (copy, imported):
            assert {change.thread for change in found.changes()} == {"kept"}
            assert found.thread("kept").load() == KEPT
            assert found.verify().problems == ()
