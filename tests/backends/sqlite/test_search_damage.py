"""A damaged index costs nothing but itself: whatever was saved is found and kept."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import holdfast
from holdfast import Corrupt
from holdfast.testing._search import places, user
from inner.sqlite import DAMAGED, TABLES, UNUSED, search_index
from support.stores import backend_of

PADDING = "the quick brown fox jumps over the lazy dog " * 20
COUNT = 12
# FTS5 keeps what it has in tables of its own.
STORED = [
    *(table for table in TABLES if table != "search_text"),
    "search_stretch_thread",
]


def fill(store, count=COUNT, **about):
    """Conversations of ten messages, the fourth of each with its number in it."""
    for number in range(count):
        texts = [f"{PADDING} {n}" for n in range(10)]
        texts[3] += f" needle{number}."
        messages = [user(text) for text in texts]
        store.conversations.create(f"{number}", messages=messages, **about)


def spoil(path, table, damage):
    """Change bytes in every page of a table."""
    db = apsw.Connection(path)
    pages = db.execute("select pageno from dbstat where name = ?", (table,)).fetchall()
    [(size,)] = db.execute("pragma page_size").fetchall()
    db.close()
    data = bytearray(Path(path).read_bytes())
    for (page,) in pages:
        damage(data, (page - 1) * size, size)
    assert pages
    Path(path).write_bytes(data)


def flip(data, start, size):
    for offset in range(100, size, 701):
        data[start + offset] ^= 4


def wipe(data, start, size):
    data[start : start + size] = bytes(size)


@pytest.mark.parametrize("damage", [flip, wipe])
@pytest.mark.parametrize("table", STORED)
class TestDamagedPages:
    @pytest.fixture
    def damaged(self, path, table, damage):
        with holdfast.open(path) as store:
            fill(store)
            store.search("needle")
        spoil(path, table, damage)
        return path

    def test_everything_is_found(self, damaged):
        with holdfast.open(damaged) as store:
            for _ in range(2):
                assert places(store.search("needle7.")) == [("7", 3)]
                assert len(store.search("needle", limit=None)) == COUNT
                assert not store.search("nowhere")

    def test_everything_is_found_by_one_who_may_only_read(self, damaged):
        with holdfast.open(damaged, read_only=True) as store:
            assert places(store.search("needle7.")) == [("7", 3)]
            assert len(store.search("needle", limit=None)) == COUNT

    def test_verify_says_that_it_is_only_the_index(self, damaged):
        with holdfast.open(damaged) as store:
            problems = [problem.what for problem in store.verify().problems]

            assert problems[0] == DAMAGED

    def test_compacting_repairs_it(self, damaged):
        with holdfast.open(damaged) as store:
            store.compact()

            assert store.verify().problems == ()
            assert places(store.search("needle7.")) == [("7", 3)]
            assert store.verify().problems == ()

    def test_everything_else_goes_on(self, damaged, tmp_path):
        with holdfast.open(damaged) as store:
            before = store.conversations.load("3").messages
            store.conversations.add("3", user("more"))
            store.backup(str(tmp_path / "backup.db"))
            salvaged = store.salvage(str(tmp_path / "salvaged.db"))
        assert salvaged.lost == ()
        for name in ("backup.db", "salvaged.db"):
            with holdfast.open(tmp_path / name) as copy:
                assert copy.conversations.load("3").messages[:-1] == before
                assert copy.verify().problems == ()
                assert places(copy.search("needle7.")) == [("7", 3)]


def test_an_index_from_before_it_had_a_state_leaves_no_page_behind(path):
    with holdfast.open(path) as store:
        fill(store)
        store.search("needle")
        backend_of(store).database.writer.execute("drop table search_state")

        assert places(store.search("needle7.")) == [("7", 3)]
        assert places(store.search("needle7.")) == [("7", 3)]
        assert store.verify().problems == ()


def test_what_a_search_could_not_free_is_given_back_by_compacting(path):
    with holdfast.open(path) as store:
        fill(store)
        store.search("needle")
    spoil(path, "search_text_data", flip)

    with holdfast.open(path) as store:
        store.search("needle")
        # SQLite looks for unused pages unless a view comes first in its own order.
        assert {problem.what for problem in store.verify().problems} <= {UNUSED}
        store.search("needle")
        store.compact()
        assert store.verify().problems == ()
        assert places(store.search("needle7.")) == [("7", 3)]
        db = backend_of(store).database.writer
        [(pages,)] = db.execute("pragma page_count").fetchall()
        [(used,)] = db.execute("select count(*) from dbstat").fetchall()
        assert pages == used


@pytest.mark.parametrize(
    "sql",
    [
        "delete from search_text_data where id > 10",
        "update search_text_data set block = zeroblob(9) where id > 10",
        "update search_text_data set block = x'ff' where id > 10",
        "delete from search_text_config",
        "delete from search_text_idx",
        "drop table search_text_docsize",
        "delete from search_stretch",
        "drop table search_stretch",
        "delete from search_thread",
        "drop table search_thread",
        "drop table search_text",
    ],
)
def test_rows_of_the_index_may_be_missing_or_wrong(path, sql):
    with holdfast.open(path) as store:
        fill(store)
        store.search("needle")
    db = apsw.Connection(path, vfs="cksmvfs")
    db.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    db.execute(sql)
    db.close()

    with holdfast.open(path) as store:
        for _ in range(2):
            assert places(store.search("needle7.")) == [("7", 3)]
            assert len(store.search("needle", limit=None)) == COUNT
        store.compact()
        assert places(store.search("needle7.")) == [("7", 3)]
        assert store.verify().problems == ()


def test_a_check_is_not_misled_by_what_another_connection_did_to_the_index(path):
    """FTS5 checks with what it remembers of the index unless it is made to look."""
    with holdfast.open(path) as store, holdfast.open(path) as rival:
        for number in range(60):
            store.conversations.create(f"{number}", messages=[user(PADDING)])
            store.search("anything")
        assert rival.verify().problems == ()
        store.conversations.delete(*(f"{number}" for number in range(60)))
        store.search("anything")
        assert rival.verify().problems == ()
        search_index.optimize(backend_of(store).database.writer)

        assert rival.verify().problems == ()


def test_a_damaged_conversation_is_not_passed_over(path):
    with holdfast.open(path) as store:
        fill(store, 2, owner="me")
        store.conversations.create("sound", owner="you", messages=[user("needle")])
    db = apsw.Connection(path, vfs="cksmvfs")
    db.execute("update segment set data = zeroblob(10) where key >> 32 = 1")
    db.close()

    with holdfast.open(path) as store:
        for query in ("needle", "ne"):
            with pytest.raises(Corrupt):
                store.search(query)
            assert places(store.search(query, owner="you")) == [("sound", 0)]
            assert places(store.search(query, limit=1)) == [("sound", 0)]
        indexed = backend_of(store).database.writer.execute(
            "select name from thread join search_thread on thread = number"
        )
        assert sorted(indexed) == [("conversation:1",), ("conversation:sound",)]
