"""A database of the program in a folder that is saved: its locks stay what they are."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest

from support.workspaces import wait_for_the_clock, write

WRITE = """
import sqlite3, sys
sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute("begin immediate")
"""


@pytest.fixture(params=["delete", "wal"])
def database(folder, request):
    """A database in the folder, with a transaction that has written."""
    db = sqlite3.connect(folder / "app.db", isolation_level=None)
    db.execute(f"pragma journal_mode = {request.param}")
    db.execute("create table note (text)")
    db.execute("begin immediate")
    db.execute("insert into note values ('mine')")
    yield folder / "app.db"
    db.close()


def error_of_another_writer(database):
    ran = subprocess.run(
        [sys.executable, "-c", WRITE, database],
        check=False,
        capture_output=True,
        text=True,
    )
    return ran.stderr


def test_a_save_keeps_the_locks_of_an_open_database(database, workspace, thread):
    thread.save({}, files=workspace)

    assert "database is locked" in error_of_another_writer(database)
    assert thread.read_file("app.db") == database.read_bytes()


def test_so_does_a_save_that_reads_what_an_earlier_scan_knows(
    folder, database, workspace, threads
):
    wait_for_the_clock(folder)
    workspace.scan()
    threads("other").save({}, files=workspace)

    assert "database is locked" in error_of_another_writer(database)


def test_so_does_a_restore_that_finds_its_file_there(
    folder, database, workspace, thread
):
    first = thread.save({}, files=workspace)
    write(folder / ".gitignore", "app.db*\n")
    thread.save({}, files=workspace)

    report = workspace.restore(thread, first, dry_run=True)

    assert "database is locked" in error_of_another_writer(database)
    assert report.written == ()


def test_a_file_that_is_open_for_writing_only_is_saved(folder, workspace, thread):
    with open(folder / "app.log", "wb") as log:
        log.write(bytes(512))
        log.flush()
        thread.save({}, files=workspace)

    assert thread.read_file("app.log") == bytes(512)
