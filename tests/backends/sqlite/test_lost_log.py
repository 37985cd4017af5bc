"""A log that is removed, replaced or damaged: nothing acknowledged is lost silently."""

from __future__ import annotations

import contextlib
import gc
import glob
import os
import shutil
import sqlite3
import subprocess
import sys
import warnings

import pytest

import holdfast
from holdfast import Corrupt, HoldfastError
from holdfast.cli import main as cli
from holdfast.testing import raises
from support.programs import ENVIRONMENT

pytestmark = pytest.mark.processes

# Saves until it is killed, and says so after each.
SAVER = """
import os, sys, holdfast
store = holdfast.open(sys.argv[1], durability=sys.argv[2])
for n in range(20):
    store.thread(f"t{n % 4}").append(m=[n])
os._exit(9)
"""
# Reads its own database; another program looks into it and closes it; then saves on.
READER = """
import os, subprocess, sys, holdfast
store = holdfast.open(sys.argv[1])
look = (
    "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]);"
    "db.execute('select count(*) from checkpoint').fetchall(); db.close()"
)
for n in range(5):
    store.thread("t").append(m=[n])
for name in sys.argv[2:]:
    with open(sys.argv[1] + name, "rb") as file:
        file.read()
subprocess.run([sys.executable, "-c", look, sys.argv[1]], check=True)
for n in range(20):
    try:
        store.thread("t").append(m=[n])
    except holdfast.HoldfastError as error:
        os._exit(9 if error.code == "log_removed" else 1)
os._exit(9)
"""
# As on a system that has no locks of open file descriptions.
ELSEWHERE = """
from inner.sqlite import open_files
open_files._IS_LINUX = False
"""


def run(program, *arguments):
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments], env=ENVIRONMENT, check=False
    )
    assert ran.returncode == 9


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


def crash(path, durability="full"):
    """Leave a store behind as a killed program does, and flip a bit of its log."""
    run(SAVER, str(path), durability)
    log = path.with_name("a.db-wal")
    content = bytearray(log.read_bytes())
    content[len(content) // 2] ^= 1
    log.write_bytes(content)
    return bytes(content)


def found_in(path):
    with holdfast.open(path) as store:
        assert store.verify().problems == ()
        return sum(len(store.thread(t.id).load()["m"]) for t in store.threads())


# --- the log is damaged ---------------------------------------------------------------


@pytest.mark.parametrize("read_only", [False, True])
def test_a_damaged_log_is_told_with_the_number_of_changes_lost(path, read_only):
    damaged = crash(path)

    with raises(Corrupt) as raised:
        holdfast.open(path, read_only=read_only)

    left = 20 - raised.error.lost
    assert 0 < left < 20
    assert f"{raised.error.lost} acknowledged changes are missing" in str(raised.error)
    assert path.with_name("a.db-wal").read_bytes() == damaged

    with holdfast.open(path, accept_loss=True) as store:
        store.thread("t0").append(m=[99])
    assert found_in(path) == left + 1


def test_the_command_line_accepts_the_loss_once_for_all(path, capsys):
    crash(path)

    assert cli(["threads", "--store", str(path)]) == 4
    assert "run holdfast verify --accept-loss" in capsys.readouterr().err
    assert cli(["verify", "--accept-loss", "--store", str(path)]) == 0
    assert cli(["threads", "--store", str(path)]) == 0


def test_what_is_left_can_be_salvaged(path, tmp_path):
    crash(path)

    saved = holdfast.salvage(path, str(tmp_path / "b.db"))

    assert saved.lost == ()
    assert found_in(tmp_path / "b.db") == saved.checkpoints > 0


# --- all of it was in the log ---------------------------------------------------------


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


LOST_BEGINNINGS = {
    "a bit of its header": lambda log: flip(log, 3),
    "a bit of its first frame": lambda log: flip(log, 5000),
    "its end": lambda log: os.truncate(log, 20_000),
    "all of it": os.unlink,
}


@pytest.mark.parametrize("harm", LOST_BEGINNINGS)
def test_a_store_that_has_nothing_but_its_log_is_not_opened_empty(harm, path, capsys):
    run(SAVER, str(path), "full")
    LOST_BEGINNINGS[harm](path.with_name("a.db-wal"))

    for options in ({}, {"read_only": True}):
        with raises(Corrupt) as raised:
            holdfast.open(path, **options)
        assert raised.error.lost == 20
    assert cli(["verify", "--store", str(path)]) == 4
    assert "--accept-loss" in capsys.readouterr().err

    assert cli(["verify", "--accept-loss", "--store", str(path)]) == 0
    assert found_in(path) == 0


@pytest.mark.parametrize("options", [{}, {"key": b"k" * 32}, {"compress": True}])
def test_what_stands_behind_damage_in_a_log_can_be_salvaged(options, path, tmp_path):
    program = f"{SAVER.replace('durability=sys.argv[2]', f'**{options!r}')}"
    run(program, str(path))
    for at in (3, 5000):
        flip(path.with_name("a.db-wal"), at)
    key = {"key": options["key"]} if "key" in options else {}

    saved = holdfast.salvage(path, str(tmp_path / "b.db"), **key)

    assert (saved.checkpoints, saved.lost) == (20, ())
    with holdfast.open(tmp_path / "b.db", **key) as store:
        assert [store.thread(f"t{n}").load()["m"] for n in range(4)] == [
            [n, n + 4, n + 8, n + 12, n + 16] for n in range(4)
        ]


@pytest.mark.parametrize("left", [("-wal", "-shm", "-lock"), ("-lock",), ("", "-lock")])
def test_a_file_that_was_removed_is_missed_until_the_rest_is_removed_too(left, path):
    run(SAVER, str(path), "normal")
    if "" in left:
        path.write_bytes(b"")
    for end in {"", "-wal", "-shm", "-lock"} - {*left}:
        os.unlink(f"{path}{end}")
    files = {
        name: (path.parent / name).read_bytes() for name in os.listdir(path.parent)
    }

    for _ in range(2):
        with raises(Corrupt) as raised:
            holdfast.open(path)
        assert raised.error.lost == 20
        assert f"remove what stands beside it ({path}-wal" in str(raised.error)
        for name, content in files.items():
            assert (path.parent / name).read_bytes() == content

    for end in ("", "-wal", "-shm", "-lock"):
        path.with_name(f"a.db{end}").unlink(missing_ok=True)
    assert found_in(path) == 0


def test_a_file_that_was_removed_can_be_put_back(path, tmp_path):
    run(SAVER, str(path), "full")
    os.rename(path, tmp_path / "moved.db")
    with raises(Corrupt):
        holdfast.open(path)

    os.rename(tmp_path / "moved.db", path)

    assert found_in(path) == 20


def test_a_store_of_a_version_that_began_in_the_log_is_missed_as_well(path):
    run(SAVER, str(path), "full")
    for end in ("", "-wal", "-shm"):
        os.unlink(f"{path}{end}")
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("pragma journal_mode = wal")

    for options in ({}, {"read_only": True}):
        with raises(Corrupt) as raised:
            holdfast.open(path, **options)
        assert "it is empty, and 20 acknowledged changes are missing" in str(
            raised.error
        )

    with holdfast.open(path, accept_loss=True) as store:
        store.thread("t").append(m=[1])
    assert found_in(path) == 1


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_an_empty_database_of_another_program_becomes_a_store(mode, path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"pragma journal_mode = {mode}")
        db.execute("create table other (id)")
        db.execute("drop table other")

    for n in range(2):
        with holdfast.open(path) as store:
            store.thread("t").append(m=[n])

    assert found_in(path) == 2


def test_what_a_killed_creation_left_is_a_new_store(path):
    path.write_bytes(b"")
    path.with_name("a.db-lock").write_bytes(bytes(128))

    assert found_in(path) == 0


def test_a_lock_file_that_stays_after_a_clean_end_counts_nothing(path):
    with holdfast.open(path) as store:
        store.thread("t").append(m=[1])
        os.link(f"{path}-lock", path.with_name("kept"))
    os.unlink(path)
    os.rename(path.with_name("kept"), f"{path}-lock")

    assert found_in(path) == 0


def test_saves_that_were_never_synced_are_missed_with_a_warning(path):
    crash(path, durability="normal")

    with pytest.warns(RuntimeWarning, match="acknowledged changes are missing"):
        holdfast.open(path).close()

    assert found_in(path) < 20


def test_an_older_copy_in_the_place_of_a_store_is_told(path, tmp_path):
    with holdfast.open(path) as store:
        store.thread("t").append(m=[1])
    shutil.copy(path, tmp_path / "older.db")
    run(SAVER, str(path), "full")
    for end in ("-wal", "-shm"):
        os.unlink(f"{path}{end}")
    os.replace(tmp_path / "older.db", path)

    with raises(Corrupt) as raised:
        holdfast.open(path)

    assert "or it is an older copy" in str(raised.error)
    assert raised.error.lost == 20


def test_the_lock_file_of_another_store_says_nothing(path, tmp_path):
    with holdfast.open(tmp_path / "other.db") as other:
        other.thread("t").append(m=[1])
    run(SAVER, str(path), "full")
    for end in ("", "-wal", "-shm"):
        os.unlink(f"{path}{end}")
    os.replace(tmp_path / "other.db", path)

    assert found_in(path) == 1


@pytest.mark.parametrize("harm", ["removed", "torn", "empty", "foreign"])
def test_without_a_record_a_store_is_what_its_files_say(path, harm):
    run(SAVER, str(path), "full")
    lock = path.with_name("a.db-lock")
    content = lock.read_bytes()
    os.unlink(lock)
    if harm != "removed":
        lock.write_bytes({
            "torn": content[:8] + b"\xff" * 8 + content[16:],
            "empty": b"",
            "foreign": b"something else entirely, and longer than a record" * 9,
        }[harm])  # fmt: skip

    assert found_in(path) == 20


def test_the_record_stays_as_long_as_there_is_a_log(path):
    with holdfast.open(path) as one:
        one.thread("t").append(m=[1])
        with holdfast.open(path) as other:
            other.thread("t").append(m=[2])
        assert path.with_name("a.db-lock").read_bytes()

    assert os.listdir(path.parent) == ["a.db"]


def test_what_only_checks_or_begins_is_not_waited_for(path):
    with holdfast.open(path) as store:
        chat = store.thread("chat")
        chat.save({"n": 1})
        chat.record("key", 1)
        chat.record("key", 1)
        chat.describe(owner="ann")
        chat.fork("fork")
        store.delete("chat")
        store.prune(holdfast.Retention(last=1))
        store.compact()
        record = path.with_name("a.db-lock").read_bytes()
    path.with_name("a.db-lock").write_bytes(record)

    with holdfast.open(path) as store:  # it is not behind its record
        assert [t.id for t in store.threads()] == ["fork"]


# --- the log is removed ---------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="it has no locks that stay")
@pytest.mark.parametrize("names", [[""], ["", "-wal", "-shm", "-lock"]])
def test_a_program_may_read_its_own_files(path, names):
    run(READER, str(path), *names)

    assert found_in(path) == 25
    assert not glob.glob(f"{path}.rescued-*")


@pytest.mark.filterwarnings("ignore:wrong page checksums:RuntimeWarning")
def test_where_no_lock_stays_a_save_is_refused_before_it_is_lost(path):
    run(f"{ELSEWHERE}{READER}", str(path), "")

    [rescued] = glob.glob(f"{path}.rescued-*")
    assert found_in(path) == 5
    assert found_in(rescued) >= 5


def test_a_save_whose_log_was_removed_is_refused_and_nothing_is_lost(path):
    store = holdfast.open(path)
    for n in range(5):
        store.thread("t").append(m=[n])
    os.unlink(f"{path}-wal")

    for _ in range(2):
        with raises(HoldfastError) as raised:
            store.thread("t").append(m=[99])
        assert raised.error.code == "log_removed"
    store.close()

    [rescued] = glob.glob(f"{path}.rescued-*")
    assert rescued in str(raised.error)
    os.replace(rescued, path)
    for end in ("-wal", "-shm"):
        path.with_name(f"a.db{end}").unlink(missing_ok=True)
    with holdfast.open(path) as store:
        assert store.thread("t").load()["m"][:5] == [0, 1, 2, 3, 4]
        assert store.verify().problems == ()


def test_saves_that_are_not_synced_are_refused_soon(path):
    store = holdfast.open(path, durability="normal")
    store.thread("t").append(m=[0])
    os.unlink(f"{path}-wal")

    saved = 1
    with raises(HoldfastError) as raised:
        for n in range(1, 10_000):
            store.thread("t").append(m=[n])
            saved = n + 1
    store.close()

    assert raised.error.code == "log_removed"
    [rescued] = glob.glob(f"{path}.rescued-*")
    with holdfast.open(rescued) as copy:
        assert copy.thread("t").load()["m"][:saved] == [*range(saved)]


def test_a_log_that_was_removed_is_told_when_the_store_is_closed(path):
    store = holdfast.open(path)
    store.thread("t").append(m=[1])
    os.unlink(f"{path}-wal")

    with raises(HoldfastError) as raised:
        store.close()

    [rescued] = glob.glob(f"{path}.rescued-*")
    assert rescued in str(raised.error)
    assert found_in(rescued) == 1


# --- descriptors and links ------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="it lists no descriptors")
def test_a_store_that_was_dropped_without_closing_keeps_nothing_open(path):
    before = len(os.listdir("/dev/fd"))

    for n in range(5):
        holdfast.open(path).thread("t").append(m=[n])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()

    assert len(os.listdir("/dev/fd")) == before
    assert found_in(path) == 5
    assert os.listdir(path.parent) == ["a.db"]


def test_a_lock_file_that_is_a_link_is_refused(path, tmp_path):
    (tmp_path / "mine").write_text("mine")
    os.symlink(tmp_path / "mine", f"{path}-lock")

    with raises(HoldfastError) as raised:
        holdfast.open(path)

    assert "symbolic link" in str(raised.error)
    assert (tmp_path / "mine").read_text() == "mine"


def test_nothing_is_salvaged_or_backed_up_through_a_link(path, tmp_path):
    os.symlink(tmp_path / "elsewhere", tmp_path / "b.db")
    with holdfast.open(path) as store:
        store.thread("t").append(m=[1])
        with raises(holdfast.Conflict):
            store.salvage(str(tmp_path / "b.db"))
        with raises(holdfast.Conflict):
            store.backup(str(tmp_path / "b.db"))

    assert not (tmp_path / "elsewhere").exists()


def test_a_store_behind_a_link_keeps_its_files_together(path, tmp_path):
    (tmp_path / "real").mkdir()
    os.symlink(tmp_path / "real" / "b.db", path)

    with holdfast.open(path) as store:
        store.thread("t").append(m=[1])
        beside = sorted(os.listdir(tmp_path / "real"))

    assert beside == ["b.db", "b.db-lock", "b.db-shm", "b.db-wal"]
    assert os.listdir(tmp_path / "real") == ["b.db"]
    assert found_in(path) == 1
