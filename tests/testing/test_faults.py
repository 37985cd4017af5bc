"""The fault injector does what it says, and what it simulates does hurt."""

import doctest
import os
import random
import subprocess
import sys

import apsw
import pytest

import holdfast.testing.faults
from holdfast import HoldfastError
from holdfast.testing.faults import (
    CHANGES,
    Call,
    Fault,
    FaultyDisk,
    Platter,
    disk_full,
    io_error,
)
from support.effort import seed_of
from support.stores import backend_of

HOUR = 3_600_000_000


def test_the_example_in_the_documentation_does_what_it_shows():
    assert doctest.testmod(holdfast.testing.faults).failed == 0


@pytest.fixture
def disk():
    disk = FaultyDisk("faults")
    yield disk
    disk.remove()


@pytest.fixture
def store(disk, tmp_path):
    with disk.open(str(tmp_path / "store.db")) as store:
        yield store


# --- faults ---------------------------------------------------------------------------


def test_a_disk_counts_what_a_save_does_to_it(disk, store):
    seen = []
    disk.arm(Fault(at=1, lasting=True, effect=seen.append))

    store.thread("t").save({"n": 1})

    assert disk.heal() == len(seen) > 2
    assert {call.kind for call in seen} == {"write", "sync"}
    assert seen[-1].kind == "sync"
    assert seen[-1].path.endswith("-wal")


def test_reads_are_counted_when_they_are_asked_for(disk, store):
    store.thread("t").save({"n": 1})
    disk.arm(Fault(at=10_000, effect=io_error, kinds=frozenset({"read"})))

    with holdfast.open(backend_of(store).path) as other:
        other.thread("t").save({"n": 2})
    store.thread("t").load()

    assert disk.heal() > 0


@pytest.mark.parametrize(
    ("effect", "code"), [(disk_full, "disk_full"), (io_error, "io_error")]
)
def test_a_fault_strikes_once_at_its_call(effect, code, disk, store):
    thread = store.thread("t")
    thread.save({"n": 0})  # it begins the log
    disk.arm(Fault(at=2, effect=effect))

    with pytest.raises(HoldfastError) as raised:
        thread.save({"n": 1})

    assert raised.value.code == code
    assert thread.save({"n": 2}).step == 2


def test_a_lasting_fault_strikes_until_it_is_healed(disk, store):
    thread = store.thread("t")
    disk.arm(Fault(at=1, effect=disk_full, lasting=True))

    for _ in range(3):
        with pytest.raises(HoldfastError) as raised:
            thread.save({"n": 1})
        assert raised.value.code == "disk_full"

    disk.heal()
    assert thread.save({"n": 2}).step == 1


def test_a_full_disk_can_still_sync_truncate_and_delete():
    for kind in CHANGES - {"write"}:
        disk_full(Call(kind, "path"))
    with pytest.raises(apsw.FullError):
        disk_full(Call("write", "path"))


def test_a_torn_write_leaves_half_of_itself(disk, tmp_path):
    path = tmp_path / "store.db"
    store = disk.open(str(path))
    store.thread("t").save({"n": 1})
    before = (tmp_path / "store.db-wal").read_bytes()
    torn = []

    def fail(call):
        torn.append(call)
        io_error(call)

    disk.arm(Fault(at=2, effect=fail, torn=True))
    with pytest.raises(HoldfastError):
        store.thread("t").save({"n": 2})
    disk.heal()

    [call] = torn
    half = call.offset + len(call.data) // 2
    after = (tmp_path / "store.db-wal").read_bytes()
    assert after[call.offset : half] == call.data[: len(call.data) // 2]
    assert after[half:] == before[half:]
    store.close()


def test_killing_leaves_no_chance_to_clean_up(tmp_path):
    path = tmp_path / "store.db"
    program = f"""if True:
        from holdfast.testing.faults import *
        disk = FaultyDisk("faults")
        store = disk.open({str(path)!r})
        disk.arm(Fault(at=3, effect=kill))
        try:
            store.thread("t").save({{"n": 1}})
        finally:
            open({str(tmp_path / "cleaned-up")!r}, "w")
    """

    ended = subprocess.run([sys.executable, "-c", program], check=False)

    assert ended.returncode == -9
    assert not (tmp_path / "cleaned-up").exists()
    with holdfast.open(path) as store:
        assert store.thread("t").head is None


# --- power cuts -----------------------------------------------------------------------


def _all_survivors(platter, name, tries=1000):
    """The contents a file can have after a cut; ``None`` where it is not there."""
    chance = random.Random(1)
    return {platter.survivors(chance).get(name) for _ in range(tries)}


def test_what_was_synced_survives(tmp_path):
    platter = Platter(str(tmp_path))
    platter.opened("x-wal", is_journal=True)
    platter.written("x-wal", 0, b"abc")
    platter.synced("x-wal")

    assert _all_survivors(platter, "x-wal") == {b"abc"}


def test_what_was_not_synced_survives_whole_in_part_or_not_at_all(tmp_path):
    (tmp_path / "x").write_bytes(b"old!")
    platter = Platter(str(tmp_path))
    platter.written("x", 0, b"new!")

    assert _all_survivors(platter, "x") >= {b"old!", b"new!", b"ned!"}


def test_sectors_survive_each_for_itself_and_in_no_order(tmp_path):
    (tmp_path / "x").write_bytes(b"aaaabbbb")
    platter = Platter(str(tmp_path), sector=4)
    platter.written("x", 0, b"11112222")

    found = _all_survivors(platter, "x")

    assert {b"aaaabbbb", b"1111bbbb", b"aaaa2222", b"11112222"} <= found


def test_a_gap_before_what_survives_is_zeros(tmp_path):
    (tmp_path / "x").write_bytes(b"")
    platter = Platter(str(tmp_path), sector=4)
    platter.written("x", 0, b"11112222")

    assert b"\0\0\0\0002222" in _all_survivors(platter, "x")


def test_a_truncation_survives_or_not(tmp_path):
    (tmp_path / "x").write_bytes(b"abcdef")
    platter = Platter(str(tmp_path))
    platter.truncated("x", 2)

    assert _all_survivors(platter, "x") == {b"abcdef", b"ab"}


def test_a_new_name_is_certain_once_a_journal_has_been_synced(tmp_path):
    platter = Platter(str(tmp_path))
    platter.opened("x", is_journal=False)
    platter.synced("x")
    assert None in _all_survivors(platter, "x")

    platter.opened("x-wal", is_journal=True)
    platter.synced("x-wal")

    assert _all_survivors(platter, "x") == {b""}


def test_a_deleted_file_may_come_back_unless_its_folder_was_synced(tmp_path):
    (tmp_path / "x").write_bytes(b"old")
    platter = Platter(str(tmp_path))
    platter.deleted("x", durably=False)
    assert _all_survivors(platter, "x") == {b"old", None}

    platter.deleted("x", durably=True)

    assert _all_survivors(platter, "x") == {None}


def _sums_after_cuts(tmp_path, synchronous):
    """Move amounts between two rows; what they add up to after power cuts."""
    chance = random.Random(seed_of("sums"))
    folder = tmp_path / "disk"
    folder.mkdir()
    disk = FaultyDisk("power", platter=Platter(str(folder)))
    cuts = []

    def cut(call):
        if chance.random() < 0.2:
            cuts.append(str(tmp_path / f"cut-{len(cuts)}"))
            disk.platter.cut(cuts[-1], chance)

    db = apsw.Connection(str(folder / "db"), vfs="power")
    db.execute("pragma journal_mode = wal")
    db.execute(f"pragma synchronous = {synchronous}; pragma wal_autocheckpoint = 4")
    db.execute("create table t (n, pad); begin")
    for n in range(40):
        db.execute("insert into t values (?, zeroblob(800))", (n,))
    db.execute("commit")
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    disk.arm(Fault(at=1, lasting=True, effect=cut))
    for n in range(40):
        db.execute("begin; update t set n = n + 1 where rowid = ?1", (n + 1,))
        db.execute("update t set n = n - 1 where rowid = ?1; commit", (40 - n,))
    disk.heal()
    db.close()
    disk.remove()
    return [_sum(os.path.join(folder, "db")) for folder in cuts]


def _sum(path):
    db = apsw.Connection(path)
    try:
        if db.execute("pragma integrity_check").get != "ok":
            return "broken"
        return db.execute("select sum(n) from t").get
    except apsw.Error:
        return "broken"
    finally:
        db.close()


def test_a_database_that_never_syncs_is_broken_by_the_simulated_power_cuts(tmp_path):
    sums = _sums_after_cuts(tmp_path, synchronous=0)

    assert len(sums) > 20
    assert set(sums) > {780}


def test_a_database_that_syncs_survives_the_simulated_power_cuts(tmp_path):
    sums = _sums_after_cuts(tmp_path, synchronous=2)

    assert len(sums) > 20
    assert set(sums) == {780}


# --- the clock ------------------------------------------------------------------------

CLOCKS = {
    "backwards": lambda n: 10**15 - n * 2 * HOUR,
    "a-day-ahead": lambda n: 10**15 + n * 24 * HOUR,
    "frozen": lambda n: 10**15,
    "jumping": lambda n: 10**15 + (-1) ** n * n * HOUR,
    "before-1970": lambda n: -n,
}


@pytest.mark.parametrize("clock", CLOCKS)
def test_the_newest_is_what_was_saved_last_whatever_the_clock_says(clock, tmp_path):
    ticks = iter(range(1, 100_000))
    path = tmp_path / "store.db"
    options = {"clock": lambda: CLOCKS[clock](next(ticks)), "durability": "normal"}

    for n in range(1, 41):
        with holdfast.open(path, **options) as store:
            store.thread("a").save({"n": n})
            store.thread("b" if n % 2 else "c").append(log=[n])

            assert store.thread("a").load() == {"n": n}
            assert store.threads()[0].id == ("b" if n % 2 else "c")

    with holdfast.open(path) as store:
        assert [c.step for c in store.thread("a").history()] == list(range(40, 0, -1))
        seqs = [change.seq for change in store.changes()]
        assert seqs == sorted(seqs)
