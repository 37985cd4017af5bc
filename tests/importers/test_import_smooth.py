"""Importing the files and the database of smooth."""

import json
import os
import random

import apsw
import pytest

from holdfast import FormatMismatch
from holdfast.importers import import_from
from holdfast.operations.transcripts import open_calls
from holdfast.testing import raises
from support.import_sources import (
    EXPECTED,
    FIXTURES,
    add_row,
    fingerprint,
    same,
    smooth_back,
    smooth_database,
    smooth_records,
    source,
    write,
)

FILES = FIXTURES / "smooth/files"
CHAT = "000001ff-1a2b-4c3d-8e4f-0000000001ff"
RECORDS = smooth_records()


def record(id_, *, at="2026-05-24T10:00:00Z", iteration=0, **fields):
    return RECORDS[0] | {"id": id_, "created_at": at, "iteration": iteration} | fields


def ids(store, conversation=CHAT):
    history = store.conversations.thread(conversation).history(None, order="oldest")
    return [checkpoint.id for checkpoint in history]


# --- files ----------------------------------------------------------------------------


def test_every_agents_checkpoints_are_counted(memory):
    report = import_from(memory, FILES)

    assert report.format == "smooth"
    assert report.found == EXPECTED["smooth_files"]
    assert report.imported.checkpoints == 5
    assert report.is_complete


def test_the_files_can_be_rebuilt_from_the_store(memory):
    import_from(memory, FILES)

    assert same(smooth_back(memory), {r["id"]: r for r in RECORDS})


def test_the_newest_is_the_one_with_the_latest_time(memory):
    import_from(memory, FILES)

    head = memory.conversations.thread(CHAT).head
    assert head.id == EXPECTED["smooth_true_latest"]["agent-1"]


def test_calls_without_answers_are_found_where_they_were(memory):
    import_from(memory, FILES)

    thread = memory.conversations.thread(CHAT)
    dangling = {}
    for checkpoint in thread.history():
        state = thread.load(checkpoint)
        calls = [call.id for call in open_calls(state["messages"])]
        assert calls == state["counts"].get("open", [])
        dangling |= {checkpoint.id: calls} if calls else {}
    assert dangling == EXPECTED["smooth_dangling_tool_calls"]


def test_two_agents_with_one_conversation_id_get_one_each(memory):
    report = import_from(memory, FILES)

    chats = {chat.agent: chat for chat in memory.conversations.list()}
    assert {agent: chat.id for agent, chat in chats.items()} == {
        "agent-1": CHAT,
        "агент-2": f"{CHAT}@агент-2",
    }
    assert chats["agent-1"].messages == 6
    assert any("агент-2" in note for note in report.inferred)


def test_budget_iteration_and_metadata_have_their_places(memory):
    import_from(memory, FILES)

    chat = memory.conversations.load(CHAT, "00000203-1a2b-4c3d-8e4f-000000000203")
    assert chat.agent == "agent-1"
    assert chat.budget == 100_000
    assert chat.run == {"iteration": 1}
    saved = memory.conversations.thread(CHAT).get("00000203")
    assert saved.metadata["bead_id"] == "smooth-abc"


def test_nanoseconds_decide_the_order_and_are_kept(memory, tmp_path):
    times = {name: f"2026-05-24T10:00:00.00000000{n}Z" for n, name in enumerate("cab")}
    for name, at in times.items():
        write(tmp_path / "agent-1" / f"{name}.json", record(name, at=at))

    report = import_from(memory, tmp_path)

    assert ids(memory) == ["c", "a", "b"]
    assert {k: v["created_at"] for k, v in smooth_back(memory).items()} == times
    assert not report.inferred


def test_equal_times_are_put_in_order_by_iteration_and_that_is_said(memory, tmp_path):
    for name, iteration in (("a", 2), ("b", 1)):
        write(tmp_path / "x" / f"{name}.json", record(name, iteration=iteration))

    report = import_from(memory, tmp_path)

    assert ids(memory) == ["b", "a"]
    assert any("same time" in note for note in report.inferred)


@pytest.mark.parametrize(
    "at",
    [
        "2026-05-24T10:00:00+02:00",
        "2026-05-24t10:00:00.5z",
        "2026-05-24 10:00:00.000Z",
        "2016-12-31T23:59:60Z",
        "0001-01-01T00:00:00Z",
        "1969-12-31T23:59:59.999999999Z",
    ],
)
def test_times_in_any_dress_come_back_as_they_were(memory, tmp_path, at):
    write(tmp_path / "x" / "a.json", record("a", at=at))

    report = import_from(memory, tmp_path)

    assert report.is_complete
    assert smooth_back(memory)["a"]["created_at"] == at


def test_2_2_a_bad_or_foreign_file_hides_no_other(memory, tmp_path):
    folder = source("smooth", tmp_path)
    (folder / "agent-1" / "torn.json").write_text('{"id": "x", "agent_id"')
    (folder / "agent-1" / "empty.json").write_bytes(b"")
    (folder / "agent-1" / "zeros.json").write_bytes(bytes(4096))
    write(folder / "agent-1" / "package.json", {"name": "x"})

    report = import_from(memory, folder)

    names = [os.path.basename(finding.path) for finding in report.damaged]
    assert names == ["empty.json", "package.json", "torn.json", "zeros.json"]
    assert report.imported.checkpoints == 5


@pytest.mark.parametrize(
    "agent", ["../x", "/etc/passwd", "a/b", "", "@", "x" * 2000, "\0", "\ud800"]
)
def test_2_4_hostile_ids_are_data(memory, tmp_path, agent):
    hostile = record(agent, agent_id=agent)
    hostile["conversation"] = hostile["conversation"] | {"id": agent}
    folder = tmp_path / "files"
    path = folder / "deep" / "er" / "a.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(hostile))
    before = fingerprint(tmp_path)

    report = import_from(memory, folder)

    assert report.is_complete
    assert same(smooth_back(memory), {agent: hostile})
    assert import_from(memory, folder).already_there.checkpoints == 1
    assert fingerprint(tmp_path) == before


def test_fields_of_newer_versions_are_kept(memory, tmp_path):
    newer = record("a", metadata={"imported": {"x": "1"}, "phase": "plan"}, cost=None)
    newer["conversation"] = newer["conversation"] | {"summary": {"of": [1, 2]}}
    write(tmp_path / "x" / "a.json", newer)

    report = import_from(memory, tmp_path)

    assert same(smooth_back(memory), {"a": newer})
    assert report.imported.messages == len(newer["conversation"]["messages"]) > 0


# --- the database ---------------------------------------------------------------------


def test_the_database_holds_the_same_as_the_files(memory, tmp_path):
    path = source("smooth-sqlite", tmp_path)

    report = import_from(memory, path)

    assert report.format == "smooth-sqlite"
    assert report.found == EXPECTED["smooth_files"]
    whole = {r["id"]: r | {"created_at": r["created_at"][:19] + "Z"} for r in RECORDS}
    assert same(smooth_back(memory, "smooth-sqlite"), whole)
    latest = EXPECTED["smooth_true_latest"]["agent-1"]
    assert memory.conversations.thread(CHAT).head.id == latest


def test_2_3_of_ten_rows_of_one_second_the_last_written_is_the_head(memory, tmp_path):
    names = [f"c{n}" for n in range(10)]
    random.Random(7).shuffle(names)
    rows = [record(name, iteration=n) for n, name in enumerate(names)]
    path = smooth_database(tmp_path / "smooth.db", rows)

    report = import_from(memory, path)

    assert ids(memory) == names
    assert memory.conversations.load(CHAT).run == {"iteration": 9}
    assert any("rows were written" in note for note in report.inferred)


def test_a_row_that_was_replaced_counts_as_written_last(memory, tmp_path):
    rows = [record("a"), record("b"), record("a", iteration=5)]
    path = smooth_database(tmp_path / "smooth.db", rows)

    import_from(memory, path)

    assert ids(memory) == ["b", "a"]


def test_nothing_is_made_beside_a_database_or_changed_in_it(memory, tmp_path):
    path = source("smooth-sqlite", tmp_path / "folder")
    before = fingerprint(path.parent)

    import_from(memory, path)
    import_from(memory, path, dry_run=True)

    assert os.listdir(path.parent) == [path.name]
    assert fingerprint(path.parent) == before


def test_rows_that_are_only_in_the_write_ahead_log_are_read(memory, tmp_path):
    folder = tmp_path / "db"
    folder.mkdir()
    path = smooth_database(folder / "smooth.db", [record("a")])
    db = apsw.Connection(str(path))
    db.execute("pragma wal_autocheckpoint = 0").fetchall()
    add_row(db, record("b"))
    before = fingerprint(folder)

    report = import_from(memory, path)

    assert report.is_complete
    assert ids(memory) == ["a", "b"]
    assert fingerprint(folder) == before
    assert len(os.listdir(folder)) == 3
    db.close()


def test_a_damaged_row_hides_no_other(memory, tmp_path):
    path = smooth_database(tmp_path / "smooth.db", [record(c) for c in "abcdef"])
    db = apsw.Connection(str(path))
    for change in (
        "update checkpoints set conversation = x'7bff' where id = 'a'",
        "update checkpoints set conversation = 7 where id = 'b'",
        "update checkpoints set metadata = 'no' where id = 'c'",
        "update checkpoints set created_at = 'noon' where id = 'd'",
        "update checkpoints set agent_id = cast(x'ff' as text) where id = 'e'",
        "update checkpoints set metadata = null where id = 'f'",
    ):
        db.execute(change).fetchall()
    db.close()

    report = import_from(memory, path)

    assert [f.reason[:6] for f in report.damaged] == [f"row {n}:" for n in range(1, 6)]
    assert ids(memory) == ["f"]


def test_a_column_of_a_newer_version_is_kept(memory, tmp_path):
    path = smooth_database(tmp_path / "smooth.db", [record("a")])
    db = apsw.Connection(str(path))
    db.execute("alter table checkpoints add column cost real").fetchall()
    db.execute("alter table checkpoints add column raw blob").fetchall()
    db.execute("update checkpoints set cost = 0.5, raw = x'00ff'").fetchall()
    db.close()

    import_from(memory, path)

    kept = smooth_back(memory, "smooth-sqlite")["a"]
    assert (kept["cost"], kept["raw"]) == (0.5, {"hex": "00ff"})


@pytest.mark.parametrize("cut", [60, 5000])
def test_a_database_that_is_cut_off_is_reported(memory, tmp_path, cut):
    path = smooth_database(tmp_path / "smooth.db", [record(f"c{n}") for n in range(50)])
    path.write_bytes(path.read_bytes()[:cut])

    report = import_from(memory, path, format="smooth-sqlite")

    assert report.damaged
    assert memory.verify().problems == ()


def test_a_file_that_only_begins_like_a_database_is_in_no_known_format(
    memory, tmp_path
):
    path = tmp_path / "smooth.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(1000))

    with raises(FormatMismatch):
        import_from(memory, path)


def test_another_database_is_not_taken_for_smooths(memory, tmp_path):
    path = tmp_path / "other.db"
    db = apsw.Connection(str(path))
    db.execute("create view checkpoints as select 1 as id").fetchall()
    db.close()

    report = import_from(memory, path, format="smooth-sqlite")

    assert "no table" in report.damaged[0].reason


def test_files_and_database_of_one_agent_are_not_mixed(memory, tmp_path):
    import_from(memory, FILES)

    report = import_from(memory, source("smooth-sqlite", tmp_path))

    assert report.imported.checkpoints == 0
    assert len(report.conflicts) == 2
    assert same(smooth_back(memory), {r["id"]: r for r in RECORDS})


def test_a_database_beside_the_files_is_imported_too(memory, tmp_path):
    folder = source("smooth", tmp_path)
    chat = {**RECORDS[0]["conversation"], "id": "only in the database"}
    rows = [record("a", conversation=chat), record("b", conversation=chat)]
    smooth_database(folder / "checkpoints.db", rows)

    report = import_from(memory, folder)

    files, database = report.parts
    assert (files.format, files.imported.checkpoints) == ("smooth", 5)
    assert (database.format, database.imported.checkpoints) == ("smooth-sqlite", 2)
    assert database.path == str(folder / "checkpoints.db")
    assert report.is_complete
    assert report.ignored == ()


def test_a_database_alone_in_a_folder_is_found(memory, tmp_path):
    source("smooth-sqlite", tmp_path / "state" / "agent")

    report = import_from(memory, tmp_path)

    assert (report.format, report.imported.checkpoints) == ("smooth-sqlite", 5)


def test_a_database_beside_files_of_a_given_format_is_named(memory, tmp_path):
    folder = source("smooth", tmp_path)
    smooth_database(folder / "checkpoints.db", [record("a")])

    report = import_from(memory, folder, format="smooth")

    assert [finding.reason for finding in report.ignored] == [
        "is a database; import it by itself"
    ]


def test_what_files_and_database_both_hold_is_taken_once_and_told(memory, tmp_path):
    folder = source("smooth", tmp_path)
    smooth_database(folder / "checkpoints.db", RECORDS)

    files, database = import_from(memory, folder).parts

    assert (files.imported.checkpoints, database.imported.checkpoints) == (5, 0)
    assert all("other content" in f.reason for f in database.conflicts)
    assert len(database.conflicts) == 2
