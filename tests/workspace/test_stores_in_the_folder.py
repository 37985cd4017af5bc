"""A store in a folder that is saved: no snapshot has it, and no restore touches it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys

import pytest

import holdfast
from holdfast.workspace import Workspace
from support.workspaces import wait_for_the_clock, write

STORE = "a Holdfast store"


def omitted(tree):
    return {os.fsdecode(each.path): each.reason for each in tree.omitted}


def bytes_of(folder):
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".holdfast" not in path.parts
    }


@pytest.mark.parametrize("kind", ["", "dir:"])
def test_saves_do_not_have_the_store_that_they_are_in(folder, workspace, kind):
    write(folder / "sub" / "main.py")

    with holdfast.open(f"{kind}{folder}/sub/own") as store:
        thread = store.thread("agent")
        saves = [thread.save({"n": n}, files=workspace) for n in range(3)]
        trees = [thread.files(save) for save in saves]

        assert all(omitted(tree) == {"sub/own": STORE} for tree in trees)
        assert all(list(tree) == ["sub/main.py"] for tree in trees)


@pytest.mark.parametrize(
    "options", [{}, {"key": b"k" * 32}, {"compress": True}], ids=str
)
def test_a_store_is_recognised_while_it_is_young_open_and_closed(folder, options):
    write(folder / "main.py")
    with holdfast.open(folder / "agents.db", **options) as store:
        young = Workspace(folder, largest_file=100).scan().tree
        store.thread("agent").save({"text": "x" * 100_000})
        grown = Workspace(folder).scan().tree
    closed = Workspace(folder, largest_file=100).scan().tree

    for tree in (young, grown, closed):
        assert (list(tree), omitted(tree)) == (["main.py"], {"agents.db": STORE})


KILLED = """
import os, sys, holdfast
store = holdfast.open(sys.argv[1])
store.thread("agent").save({})
os._exit(0)
"""


def test_what_a_killed_process_left_beside_its_store_is_left_out(folder, workspace):
    write(folder / ".gitignore", "*.db\n")  # its log has another ending
    for name in ("a.db", "a.store"):
        subprocess.run([sys.executable, "-c", KILLED, folder / name], check=True)
    assert (folder / "a.db-wal").exists()

    tree = workspace.scan().tree

    assert list(tree) == [".gitignore"]
    assert omitted(tree) == {"a.store": STORE}


def test_a_young_store_is_recognised_before_its_lock_file_has_its_size(folder):
    store, lock = folder / "a.store", folder / "a.store-lock"
    subprocess.run([sys.executable, "-c", KILLED, store], check=True)
    lock.write_bytes(b"")

    assert omitted(Workspace(folder).scan().tree) == {"a.store": STORE}


def test_an_open_store_is_recognised_without_opening_its_files(folder, monkeypatch):
    """Closing one of them again would drop the locks that SQLite has on it."""
    workspace, opened, real = Workspace(folder), [], os.open

    def noting(path, *args, **kwargs):
        opened.append(os.path.basename(path))
        return real(path, *args, **kwargs)

    def no_list(path):
        raise FileNotFoundError(2, "No such file or directory", path)

    with holdfast.open(folder / "agents.db") as store:
        store.thread("agent").save({})
        monkeypatch.setattr(os, "open", noting)
        monkeypatch.setattr(os, "listdir", no_list)  # a jail without /dev/fd
        workspace.scan()
        monkeypatch.undo()
    with holdfast.open(folder / "agents.db", read_only=True) as store:
        store.thread("agent").load()
        monkeypatch.setattr(os, "open", noting)
        tree = workspace.scan().tree

    assert omitted(tree) == {"agents.db": STORE}
    assert opened
    assert not any(name.startswith("agents.db") for name in opened)


def test_files_that_resemble_a_store_belong_to_the_snapshot(folder, tmp_path):
    with sqlite3.connect(folder / "mine.db") as db:
        db.execute("create table t (a)")
        db.execute("pragma application_id = 7")
    db.close()
    write(folder / "yarn", "")
    write(folder / "yarn-lock")
    write(folder / "shop" / "store.jsonl", '{"name": "corner shop"}\n')
    holdfast.open(tmp_path / "agents.db").close()
    (folder / "link.db").symlink_to(tmp_path / "agents.db")

    tree = Workspace(folder).scan().tree

    names = ["link.db", "mine.db", "shop/store.jsonl", "yarn", "yarn-lock"]
    assert (list(tree), omitted(tree)) == (names, {})


def test_a_restore_and_its_undo_leave_the_own_store_alone(folder, workspace):
    with holdfast.open(folder / "agents.db") as store:
        thread = store.thread("agent")
        write(folder / "a.txt", "one")
        first = thread.save({"n": 1}, files=workspace)
        write(folder / "a.txt", "two")
        thread.save({"n": 2}, files=workspace)

        report = workspace.restore(thread, first, state=True)
        assert (report.written, report.removed) == (("a.txt",), ())
        workspace.undo(thread)

        assert (folder / "a.txt").read_text() == "two"
        assert thread.load() == {"n": 2}
        assert not store.verify().problems


@pytest.mark.parametrize(
    ("recorded", "address", "store"),
    [
        ("data", "data", "data"),
        ("data-wal", "data", "data"),
        ("data", "dir:data", "data"),
        ("data/old-7.jsonl", "dir:data", "data"),
    ],
)
def test_a_store_is_in_the_way_of_a_file_that_was_there(
    folder, workspace, thread, monkeypatch, recorded, address, store
):
    write(folder / recorded, "ordinary")
    write(folder / "other.txt", "one")
    first = thread.save({}, files=workspace)
    (folder / recorded).unlink()
    write(folder / "other.txt", "two")
    monkeypatch.chdir(folder)
    with holdfast.open(address) as there:
        there.thread("agent").save({})
    thread.save({}, files=workspace)
    before = bytes_of(folder)

    for force in (False, True):
        with pytest.raises(holdfast.Conflict) as caught:
            workspace.restore(thread, first, force=force)
        assert caught.value.code == "files_in_the_way"
        assert caught.value.paths == (store,)
    assert bytes_of(folder) == before


def test_a_store_that_comes_back_takes_its_companions_out(folder, workspace, tmp_path):
    store = folder / "agents.db"
    subprocess.run([sys.executable, "-c", KILLED, store], check=True)
    store.rename(tmp_path / "agents.db")
    wait_for_the_clock(folder)  # so that the next scan believes their times
    assert "agents.db-lock" in workspace.scan().tree
    (tmp_path / "agents.db").rename(store)

    assert list(workspace.scan().tree) == []


def test_a_folder_that_is_a_store_is_no_workspace(folder):
    holdfast.open(f"dir:{folder}").close()

    with pytest.raises(holdfast.Unsupported) as caught:
        Workspace(folder)

    assert caught.value.code == "workspace_is_store"
