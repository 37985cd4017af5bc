"""A program other than Holdfast writes pages of the file, without their checksums."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
import warnings

import pytest

import holdfast
from holdfast import Corrupt
from holdfast.cli import main as cli
from holdfast.testing import raises
from holdfast.testing.trials.damage import ReadOutcome, truth_of
from holdfast.testing.trials.scenario import FILE_PLACE
from inner.sqlite import PAGE, PageFile, page_checksums
from support.damage import DAMAGES
from support.effort import FLIPS, seed_of
from support.stores import backend_of

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(page_checksums() is None, reason="this SQLite has no checksums"),
]

LOOK = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(db.execute(sys.argv[2]).fetchall())
db.close()
"""
CRASH = """
import os, sys, holdfast
store = holdfast.open(sys.argv[1])
for n in range(12):
    thread = store.thread(f"t{n % 3}", owner=f"owner {n % 2}", metadata={"n": n})
    thread.append(m=[n, "word" * 100])
    thread.record(f"call {n}", {"n": n})
store.thread("t0").rewind("@~1")
said = [holdfast.Message.user("a word")]
store.conversations.create("talk", messages=said)
assert store.search("word", limit=1)
os._exit(9)
"""
SEEN = """
import sys, warnings, holdfast
warnings.simplefilter("ignore")
with holdfast.open(sys.argv[1]) as store:
    print(len(store.thread("t1").load()["m"]), store.verify().ok)
"""


def look(path, statement="select count(*) from checkpoint"):
    """Look into the file with a SQLite that knows nothing of us."""
    subprocess.run([sys.executable, "-c", LOOK, str(path), statement], check=True)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    """The files that a killed program leaves behind."""
    folder = tmp_path_factory.mktemp("crashed")
    program = [sys.executable, "-c", CRASH, str(folder / FILE_PLACE)]
    assert subprocess.run(program, check=False).returncode == 9
    return folder


@pytest.fixture
def path(crashed, tmp_path):
    """A copy of the crashed files after another program has opened them."""
    shutil.copytree(crashed, tmp_path, dirs_exist_ok=True)
    look(tmp_path / FILE_PLACE)
    assert not (tmp_path / f"{FILE_PLACE}-wal").exists()
    return tmp_path / FILE_PLACE


def bad_pages(path):
    with PageFile(str(path), read_only=True) as file:
        return file.bad_pages(PAGE)


def messages(store):
    threads = store.threads(kind="thread")
    return {t.id: store.thread(t.id).load()["m"][::2] for t in threads}


EXPECTED = {"t0": [0, 3, 6], "t1": [1, 4, 7, 10], "t2": [2, 5, 8, 11]}


def test_a_store_somebody_looked_into_after_a_crash_goes_on(path):
    assert bad_pages(path)

    with pytest.warns(RuntimeWarning, match="all rows and indexes fit"):
        store = holdfast.open(path)
    with store:
        assert messages(store) == EXPECTED
        assert store.verify().problems == ()
        store.thread("t0").append(m=[99, ""])
        assert len(store.search("word")) > 0

    assert bad_pages(path) == []
    with holdfast.open(path) as store:  # and says nothing any more
        assert store.thread("t0").load()["m"][-2] == 99


def test_it_can_be_read_by_one_who_may_only_read(path):
    before = path.read_bytes()

    with pytest.warns(RuntimeWarning, match="ignored until it is opened for writing"):
        store = holdfast.open(path, read_only=True)
    with store:
        assert messages(store) == EXPECTED
        assert store.verify().problems == ()
        assert len(store.search("word")) > 0

    assert path.read_bytes() == before


def test_doctor_tells_of_it_and_changes_nothing(path, capsys):
    before = path.read_bytes()

    assert cli(["doctor", "--store", str(path)]) == 0

    assert "wrong page checksums" in capsys.readouterr().out
    assert path.read_bytes() == before


def test_a_repair_that_was_killed_is_finished_by_the_next(path):
    places = bad_pages(path)
    with PageFile(str(path), read_only=False) as file:
        file.renew(places[: len(places) // 2], PAGE)

    with pytest.warns(RuntimeWarning, match="written anew"):
        holdfast.open(path).close()

    assert bad_pages(path) == []


def test_processes_that_repair_at_the_same_time_do_no_harm(path):
    program = [sys.executable, "-c", SEEN, str(path)]

    running = [subprocess.Popen(program, stdout=subprocess.PIPE) for _ in range(3)]

    assert [process.communicate()[0] for process in running] == [b"8 True\n"] * 3
    assert bad_pages(path) == []


def test_a_live_store_goes_on_after_a_checkpoint_by_another_program(tmp_path):
    path = tmp_path / FILE_PLACE
    with holdfast.open(path, cache_size=0) as store, warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for n in range(30):
            store.thread(f"t{n % 5}").append(m=[n, "x" * 3000])
            if n % 10 == 5:
                look(path, "pragma wal_checkpoint(truncate)")
                assert bad_pages(path)
                if n > 10:  # the next save has to read its pages again
                    backend_of(store).database.writer.execute("pragma shrink_memory")
                    continue
                readers = [threading.Thread(target=store.verify) for _ in range(2)]
                for reader in readers:
                    reader.start()
                for reader in readers:
                    reader.join()
        found = {t.id: len(store.thread(t.id).load()["m"]) for t in store.threads()}
        assert found == {f"t{n}": 12 for n in range(5)}
        assert store.verify().problems == ()


@pytest.mark.parametrize(
    "change",
    [
        "update thread set owner = 'eve'",
        "update thread set head = head - 1 where head > 1",
        "update thread set metadata = x'7b7d'",
        "update checkpoint set step = step + 1",
        "update segment set data = x'00'",
        "update journal set value = x'31'",
        "update move set kind = 'undo'",
        "update setting set value = x'32'",
        "delete from segment where key = (select max(key) from segment)",
        "delete from checkpoint where seq = (select max(parent) from checkpoint)",
        "delete from thread where number = 1",
        "drop index journal_key",
        "pragma user_version = 1",
    ],
)
def test_what_another_program_changed_stays_damage(change, path):
    look(path, "select 1")
    db_change = f"import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); \
db.execute({change!r}); db.commit(); db.close()"
    subprocess.run([sys.executable, "-c", db_change, str(path)], check=True)

    with raises(Corrupt), holdfast.open(path) as store:
        messages(store)

    assert bad_pages(path)


@pytest.mark.filterwarnings("ignore:wrong page checksums:RuntimeWarning")
@pytest.mark.parametrize("damage", ["flip", "zeros"])
def test_damage_is_not_taken_for_a_foreign_write(damage, path, tmp_path):
    sound = tmp_path / "sound.db"
    shutil.copyfile(path, sound)
    with holdfast.open(sound, cache_size=0) as store:
        truth = truth_of(store)
    seed = seed_of(f"foreign {damage}")
    chance = random.Random(seed)
    data = path.read_bytes()

    for number in range(max(FLIPS // 4, 10)):
        damaged = tmp_path / f"{number}.db"
        content, where = DAMAGES[damage][0](data, chance)
        damaged.write_bytes(content)

        outcome = ReadOutcome(str(damaged), truth)

        assert outcome.wrong == [], f"seed {seed}: {where}"
        os.unlink(damaged)
