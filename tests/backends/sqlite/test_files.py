"""What a store does with the file it is given."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

import holdfast
from holdfast import Agent, FormatMismatch, Message
from holdfast.faults import Fault, FaultyDisk
from inner.sqlite import CHECKSUM_BYTES, FORMAT, page_checksums
from support.stores import backend_of


def names_in(folder) -> set[str]:
    return set(os.listdir(folder))


def test_a_path_a_sqlite_address_and_a_path_object_open_the_same_file(tmp_path):
    with holdfast.open(f"sqlite:{tmp_path}/a.db") as store:
        store.thread("t").save(1)

    with holdfast.open(str(tmp_path / "a.db")) as store:
        assert store.thread("t").load() == 1
    with holdfast.open(tmp_path / "a.db") as store:
        assert store.thread("t").load() == 1


def test_home_is_expanded_and_folders_are_made_if_that_is_asked_for(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))

    for address in ("~/deep/er/a.db", f"dir:{tmp_path}/deep/er/history"):
        with pytest.raises(holdfast.HoldfastError, match="does not exist; make"):
            holdfast.open(address)
        assert names_in(tmp_path) == set()
    with holdfast.open("~/deep/er/a.db", make_folders=True) as store:
        store.thread("t").save(1)

    assert (tmp_path / "deep" / "er" / "a.db").exists()


def test_a_store_says_where_it_is_and_whether_it_is_open(tmp_path):
    with holdfast.open(tmp_path / "a.db") as store:
        assert repr(store) == f"<Store {tmp_path}/a.db, open>"

    assert repr(store) == f"<Store {tmp_path}/a.db, closed>"


def test_a_reader_leaves_no_file_behind_and_takes_none_away(tmp_path):
    path = tmp_path / "a.db"
    with holdfast.open(path) as writer:
        writer.thread("t").save({"a": 1})
        beside = names_in(tmp_path)
        with holdfast.open(path, read_only=True) as reader:
            assert reader.thread("t").load() == {"a": 1}
        assert names_in(tmp_path) == beside
    before = path.read_bytes()

    with holdfast.open(path, read_only=True) as reader:
        assert reader.thread("t").load() == {"a": 1}

    assert names_in(tmp_path) == {"a.db"}
    assert path.read_bytes() == before


def test_an_empty_file_is_called_empty(tmp_path):
    path = tmp_path / "a.db"
    path.touch()

    with pytest.raises(holdfast.FormatMismatch, match="is empty"):
        holdfast.open(path, read_only=True)
    assert names_in(tmp_path) == {"a.db"}


def test_only_the_owner_can_read_any_file_of_a_store(tmp_path):
    old = os.umask(0)
    try:
        with holdfast.open(tmp_path / "a.db") as store:
            store.thread("t").save({"secret": "x" * 1000})
            modes = {
                name: stat.S_IMODE(os.stat(tmp_path / name).st_mode)
                for name in names_in(tmp_path)
            }
    finally:
        os.umask(old)

    assert set(modes) == {"a.db", "a.db-wal", "a.db-shm", "a.db-lock"}
    assert set(modes.values()) == {0o600}


def test_a_closed_store_leaves_one_file(tmp_path):
    with holdfast.open(tmp_path / "a.db") as store:
        store.thread("t").save(1)

    assert names_in(tmp_path) == {"a.db"}


def test_a_file_of_another_application_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.db"
    other = apsw.Connection(str(path))
    other.execute("create table t (x); insert into t values (1)")
    other.close()
    before = path.read_bytes()

    with pytest.raises(holdfast.FormatMismatch, match="another application"):
        holdfast.open(path)

    assert path.read_bytes() == before
    assert names_in(tmp_path) == {"other.db"}


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but long enough to be read as a header" * 10)
    before = path.read_bytes()

    with pytest.raises(holdfast.FormatMismatch, match="not a Holdfast store"):
        holdfast.open(path)

    assert path.read_bytes() == before


def test_a_newer_format_is_refused_with_the_way_out(tmp_path):
    path = tmp_path / "a.db"
    holdfast.open(path).close()
    db = apsw.Connection(str(path), vfs=page_checksums())
    db.execute(f"pragma user_version = {FORMAT + 1}")
    db.close()

    with pytest.raises(holdfast.FormatMismatch, match="upgrade holdfast"):
        holdfast.open(path)


CHANGES = {
    "append": lambda store: store.thread("t").append(m=["lost"]),
    "first save": lambda store: store.thread("new").save(1),
    "record": lambda store: store.thread("t").record("k", 1),
    "label": lambda store: store.thread("t").label("l"),
    "rewind": lambda store: store.thread("t").rewind("@~1"),
    "fork": lambda store: store.thread("t").fork("f"),
    "describe": lambda store: store.thread("t").describe(owner="zoe"),
    "prune": lambda store: store.prune(holdfast.Retention(last=1)),
    "delete": lambda store: store.delete("t"),
    "erase": lambda store: store.erase(thread="t"),
}


def test_a_store_that_is_open_is_stopped_when_a_newer_version_takes_the_file(tmp_path):
    """What the migration of the next format has to do."""
    path = tmp_path / "a.db"
    with holdfast.open(path) as store, contextlib.closing(sqlite3.connect(path)) as db:
        store.thread("t").append(m=[1])
        store.thread("t").append(m=[2])
        named = "type = 'trigger' and sql like '%holdfast_format_%'"
        query = f"select name, sql from sqlite_schema where {named}"
        for name, sql in db.execute(query).fetchall():
            db.execute(f"drop trigger {name}")
            now = FORMAT
            db.execute(sql.replace(f"_format_{now}", f"_format_{now + 1}"))
        db.commit()
        before = [*db.iterdump()]

        for change in CHANGES.values():
            with pytest.raises(FormatMismatch, match="start this program again"):
                change(store)

        assert [*db.iterdump()] == before
        assert store.thread("t").load() == {"m": [1, 2]}


# Format 4: a save, a journal entry, a new thread, any other change, a setting.
OLD_STATEMENTS = """
update thread set head = 1, changed = 2, updated_at = 3, guard = 0
where number = 1 and family = 1 and name = 't' and deleted_at is null;
update thread set changed = 2, updated_at = 3, guard = 0 where number = 1;
insert into thread (number, name, family, kind, metadata, changed, created_at,
    updated_at)
values (null, 'n', 0, 'thread', x'', 2, 3, 3) returning number;
insert into move (seq, thread, kind, source, target, moved_at, checksum)
values (9, 1, 'mark', null, 1, 3, 0);
insert into setting (name, value, checksum) values ('x', x'01', 0)
on conflict (name) do nothing
"""


@pytest.mark.parametrize("statement", OLD_STATEMENTS.split(";"))
def test_an_older_version_that_has_the_file_open_can_change_nothing(
    statement, tmp_path
):
    path = tmp_path / "agents.db"
    stored = Path(__file__).parents[2] / "fixtures" / "format-1" / "agents.db.gz"
    path.write_bytes(gzip.decompress(stored.read_bytes()))
    with contextlib.closing(sqlite3.connect(path)) as old:
        assert old.execute("pragma user_version").fetchone() < (FORMAT,)
        old.execute("select count(*) from thread").fetchall()

        holdfast.open(path).close()

        with pytest.raises(sqlite3.OperationalError, match="no such function"):
            old.execute(statement)


def test_a_header_without_its_format_is_damage(tmp_path):
    path = tmp_path / "a.db"
    holdfast.open(path).close()
    db = apsw.Connection(str(path), vfs=page_checksums())
    db.execute("pragma user_version = 0")
    db.close()

    with pytest.raises(holdfast.Corrupt, match="lost the number of its format"):
        holdfast.open(path)


@pytest.mark.parametrize("start", [0, 3000])
def test_a_store_that_cannot_be_opened_is_told_what_needs_no_open_store(
    start, tmp_path
):
    path = tmp_path / "a.db"
    with holdfast.open(path) as store:
        store.thread("t").save(1)
    with open(path, "r+b") as file:
        file.seek(start)
        file.write(b"\xff" * 5000)

    with pytest.raises(holdfast.HoldfastError, match=r"holdfast\.salvage\(path, to\)"):
        holdfast.open(path)


def test_a_folder_is_not_a_store(tmp_path):
    with pytest.raises(holdfast.HoldfastError, match="cannot be opened") as caught:
        holdfast.open(tmp_path)

    assert caught.value.code == "cannot_open"


def test_a_file_in_the_way_of_a_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("x")

    with pytest.raises(holdfast.HoldfastError, match="cannot be made"):
        holdfast.open(tmp_path / "file" / "a.db", make_folders=True)


def test_reading_only_refuses_changes_and_makes_nothing(tmp_path):
    path = tmp_path / "a.db"
    with pytest.raises(holdfast.NotFound, match="does not exist"):
        holdfast.open(path, read_only=True)
    assert not path.exists()
    with holdfast.open(path) as store:
        store.thread("t").save({"a": 1})

    with holdfast.open(path, read_only=True) as store:
        assert store.thread("t").load() == {"a": 1}
        with pytest.raises(holdfast.Unsupported) as caught:
            store.thread("t").save({"a": 2})

    assert caught.value.code == "read_only"
    with holdfast.open(path) as store:
        assert store.thread("t").load() == {"a": 1}


def test_a_disk_that_turns_read_only_is_told_and_nothing_has_changed(tmp_path):
    def refuse(call):
        raise apsw.ReadOnlyError(f"{call.kind} refused (injected)")

    disk = FaultyDisk("read-only disk")
    with disk.open(str(tmp_path / "a.db")) as store:
        store.thread("t").save({"a": 1})
        disk.arm(Fault(at=1, effect=refuse, lasting=True))
        with pytest.raises(holdfast.Unsupported) as caught:
            store.thread("t").save({"a": 2})
        disk.heal()

        assert caught.value.code == "read_only"
        assert store.thread("t").load() == {"a": 1}
        assert store.thread("t").save({"a": 2}).step == 2
    disk.remove()


SEALED = """
import sys, holdfast
with holdfast.open(sys.argv[1], read_only=True) as store:
    print(store.thread("chat").load(), store.verify().ok)
"""


def test_a_store_on_a_medium_that_cannot_be_written_can_be_read(tmp_path):
    path = tmp_path / "store #1?.db"
    with holdfast.open(path) as store:
        store.thread("chat").save({"n": 1})
    mounted = f"mount --bind {tmp_path} {tmp_path}"
    sealed = f"mount -o remount,ro,bind {tmp_path}"
    private = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    attempt = [*private, f"{mounted} && {sealed}"]
    if not shutil.which("unshare") or subprocess.run(attempt, check=False).returncode:
        pytest.skip("this machine lets nobody mount anything")
    program = [sys.executable, "-c", SEALED, str(path)]

    ran = subprocess.run(
        [*private, f'{mounted} && {sealed} && exec "$@"', "sh", *program],
        check=True,
        capture_output=True,
        text=True,
        cwd="/",
    )

    assert ran.stdout == "{'n': 1} True\n"
    assert os.listdir(tmp_path) == ["store #1?.db"]


def test_a_reader_sees_what_a_living_writer_saved(tmp_path):
    with (
        holdfast.open(tmp_path / "a.db") as writer,
        holdfast.open(tmp_path / "a.db", read_only=True) as reader,
    ):
        for i in range(3):
            writer.thread("t").save(i)
            assert reader.thread("t").load() == i


@pytest.mark.parametrize("url", ["", "a\0b", None, 7, b"x", "nosuch:thing"])
def test_bad_addresses_are_refused(url):
    with pytest.raises(holdfast.HoldfastError):
        holdfast.open(url)


def test_unknown_options_are_refused(tmp_path):
    with pytest.raises(holdfast.Unstorable, match="durabilty"):
        holdfast.open(tmp_path / "a.db", durabilty="full")  # type: ignore[call-arg]
    with pytest.raises(holdfast.Unstorable, match="'full' or 'normal'"):
        holdfast.open(tmp_path / "a.db", durability="off")


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_durability_is_what_sqlite_says_it_is(tmp_path, durability, level):
    with holdfast.open(tmp_path / "a.db", durability=durability) as store:
        db = backend_of(store).database.writer
        found = db.execute("pragma synchronous").fetchall()
        mode = db.execute("pragma journal_mode").fetchall()

    assert (found, mode) == ([(level,)], [("wal",)])


def test_every_page_carries_a_checksum(tmp_path):
    path = tmp_path / "a.db"
    with holdfast.open(path) as store:
        store.thread("t").save(1)

    reserved_bytes_per_page = path.read_bytes()[20]

    assert reserved_bytes_per_page == CHECKSUM_BYTES


@pytest.mark.parametrize("read_only", [False, True])
def test_a_header_that_denies_the_checksums_is_damage(read_only, tmp_path):
    path = tmp_path / "a.db"
    with holdfast.open(path) as store:
        store.thread("chat").save({"text": "x" * 20_000})
    with open(path, "r+b") as file:
        file.seek(20)
        assert file.read(1) == b"\x08"
        file.seek(20)
        file.write(b"\0")

    with pytest.raises(holdfast.Corrupt, match="no checksums"):
        holdfast.open(path, read_only=read_only)


def test_a_build_that_cannot_keep_the_checksums_does_not_write_to_the_file(tmp_path):
    path = tmp_path / "a.db"
    with holdfast.open(path) as store:
        store.thread("t").save(1)
    before = path.read_bytes()
    program = (
        "import sys, apsw; apsw.__file__ = '/elsewhere/apsw.so'\n"
        "import holdfast\n"
        "try: holdfast.open(sys.argv[1])\n"
        "except holdfast.Unsupported as error: print(error.code)\n"
        "with holdfast.open(sys.argv[2]) as store:\n"
        "    print(store.thread('t').save(1).step)"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program, str(path), str(tmp_path / "new.db")],
        check=True,
        capture_output=True,
        text=True,
    )

    assert ran.stdout.split() == ["unsupported", "1"]
    assert path.read_bytes() == before


def test_the_process_s_default_vfs_is_left_alone(tmp_path):
    program = (
        "import apsw; before = apsw.vfs_names()[0]; import holdfast;"
        " holdfast.open(__import__('sys').argv[1]).close();"
        " assert apsw.vfs_names()[0] == before"
    )

    subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.db")], check=True)


def test_compacting_gives_space_back(tmp_path):
    path = tmp_path / "a.db"
    with holdfast.open(path) as store:
        store.thread("big").save({"x": [os.urandom(500).hex() for _ in range(500)]})
        store.thread("small").save({"x": 1})
        store.delete("big")
        before = store.stats().file_bytes
        store.compact()
        after = store.stats().file_bytes
        assert store.verify().ok

    assert after < before / 4
    assert path.stat().st_size == after


def test_deleted_text_is_not_left_in_the_file(tmp_path):
    path = tmp_path / "a.db"
    with holdfast.open(path) as store:
        store.thread("secret").save({"x": ["canary-5309 " * 50]})
        store.thread("other").save(1)
        store.delete("secret")
        store.compact()

    assert b"canary-5309" not in path.read_bytes()


def test_a_backup_is_a_store_of_its_own(tmp_path):
    with holdfast.open(tmp_path / "a.db") as store:
        store.thread("t").save({"a": 1})
        store.backup(str(tmp_path / "b.db"))
        store.thread("t").save({"a": 2})
        with pytest.raises(holdfast.Conflict, match="exists"):
            store.backup(str(tmp_path / "b.db"))

    with holdfast.open(tmp_path / "b.db") as copy:
        assert copy.thread("t").load() == {"a": 1}
        assert copy.verify().ok
    assert stat.S_IMODE((tmp_path / "b.db").stat().st_mode) == 0o600


def test_a_backup_larger_than_the_cache_is_sound(tmp_path):
    with holdfast.open(tmp_path / "a.db", durability="normal") as store:
        store.thread("t").save({"text": os.urandom(3_000_000).hex()})
        store.backup(str(tmp_path / "b.db"))

    assert names_in(tmp_path) == {"a.db", "b.db"}
    with holdfast.open(tmp_path / "b.db") as copy:
        assert copy.verify().problems == ()


def test_a_backup_that_fails_leaves_nothing_behind(tmp_path):
    path = tmp_path / "a.db"
    with holdfast.open(path) as store:
        for n in range(50):
            store.thread("t").append(m=[f"{n} " * 500])
    damaged = bytearray(path.read_bytes())
    damaged[-3000] ^= 1
    path.write_bytes(damaged)

    with holdfast.open(path) as store:
        with pytest.raises(holdfast.Corrupt):
            store.backup(str(tmp_path / "b.db"))
        with pytest.raises(holdfast.HoldfastError, match="cannot be made"):
            store.backup(str(tmp_path / "no such folder" / "b.db"))

    assert names_in(tmp_path) == {"a.db"}


def test_salvage_refuses_to_write_into_a_file_that_is_there(tmp_path):
    (tmp_path / "b.db").write_text("mine")
    with (
        holdfast.open(tmp_path / "a.db") as store,
        pytest.raises(holdfast.Conflict, match="exists"),
    ):
        store.salvage(str(tmp_path / "b.db"))

    assert (tmp_path / "b.db").read_text() == "mine"


def test_salvage_keeps_ids_times_marks_forks_heads_and_journal(tmp_path):
    with holdfast.open(tmp_path / "a.db") as store:
        chat = store.thread("chat", kind="talk", owner="ann", metadata={"k": [1]})
        for i in range(4):
            chat.append(messages=[{"n": i, "text": "x" * 300}])
        chat.label("here", "@~2")
        chat.tag("a", "b", ref="@~1")
        fork = chat.fork("fork", at="@~2")
        fork.append(messages=[{"n": 99}])
        chat.fork("bare", at="@~3")
        chat.rewind("@~1")
        chat.record("tool-1", {"ok": True})
        report = store.salvage(str(tmp_path / "b.db"))
        expected = picture(store)

    assert (report.checkpoints, report.journal_entries, report.lost) == (5, 1, ())
    with holdfast.open(tmp_path / "b.db") as copy:
        assert picture(copy) == expected
        assert copy.verify().ok


def test_a_deleted_thread_stays_deleted_in_what_was_salvaged(tmp_path):
    with holdfast.open(tmp_path / "a.db") as store:
        chat = store.thread("chat")
        chat.save({"n": 1})
        chat.fork("fork").save({"n": 2})
        chat.delete()
        report = store.salvage(str(tmp_path / "b.db"))

    assert (report.threads, report.checkpoints) == (1, 2)
    with holdfast.open(tmp_path / "b.db") as copy:
        assert [thread.id for thread in copy.threads()] == ["fork"]
        assert copy.thread("fork").load("@^") == {"n": 1}
        assert copy.verify().ok


@pytest.mark.parametrize("how", ["backup", "salvage"])
def test_an_agents_checkpoints_can_be_restored_in_a_copy(how, tmp_path):
    with holdfast.open(tmp_path / "a.db") as store:
        store.agents.save(Agent(id="a", state={"text": "x" * 500}))
        for id_ in ("kept", "gone", "remade"):
            said = [Message.user(id_ * 100)]
            store.conversations.create(id_, agent="a", owner="ann", messages=said)
        store.agents.checkpoint("a", "here")
        talks = store.conversations.list()
        before = {t.id: store.conversations.load(t.id) for t in talks}
        store.conversations.add("kept", Message.user("later"))
        store.conversations.delete("gone", "remade")
        store.conversations.create("remade", agent="a")
        store.conversations.create("late", agent="a")
        getattr(store, how)(str(tmp_path / "b.db"))

    with holdfast.open(tmp_path / "b.db") as copy:
        assert {t.id for t in copy.conversations.list()} == {"kept", "remade", "late"}
        done = copy.agents.restore("a", "here")
        talks = copy.conversations.list()
        assert {t.id: copy.conversations.load(t.id) for t in talks} == before
        copy.agents.restore("a", done.recovery)
        assert {t.id for t in copy.conversations.list()} == {"kept", "remade", "late"}
        assert copy.verify().ok


def picture(store):
    return {
        thread.id: (
            thread.kind,
            thread.owner,
            thread.metadata,
            thread.forked_from,
            [
                (c.id, c.step, c.saved_at, c.label, c.tags, store.load(c))
                for c in store.thread(thread.id).history()
            ],
            [c.id for c in store.thread(thread.id).history(all=True)],
            store.thread(thread.id).journal(),
        )
        for thread in store.threads()
    }
