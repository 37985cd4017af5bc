"""Imports from the databases of LangGraph's own savers."""

import asyncio
import dataclasses
import json
import os
import shutil
import sqlite3
import subprocess
import sys

import ormsgpack
import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, Send

import holdfast
from adapters.langgraph import graphs
from adapters.langgraph.graphs import put, thread
from holdfast.adapters.langgraph import HoldfastSaver
from support.import_sources import source


@dataclasses.dataclass
class Plan:
    steps: int


@pytest.fixture
def sqlite(tmp_path):
    """A database of SQLite and a saver that writes to it."""
    path = str(tmp_path / "checkpoints.sqlite")
    connection = sqlite3.connect(path, check_same_thread=False)
    yield path, SqliteSaver(connection)
    connection.close()


@pytest.fixture
def postgres(server, schema):
    """A database of PostgreSQL and a saver that writes to it."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create schema {schema}")
    address = f"{server}?options=-csearch_path%3D{schema}"
    with PostgresSaver.from_conn_string(address) as saver:
        saver.setup()
        yield address, saver


@pytest.fixture(params=["sqlite", "postgres"])
def theirs(request):
    return request.getfixturevalue(request.param)


def contents(item):
    """What must be the same everywhere; versions become numbers."""
    return (
        item.config["configurable"],
        item.checkpoint["channel_values"],
        item.metadata,
        item.parent_config and item.parent_config["configurable"],
        item.pending_writes,
    )


def everything(saver):
    return sorted(map(contents, saver.list(None)), key=repr)


def filled(saver):
    """Threads that talked, wait for a person inside of a subgraph, and branched."""
    chat = graphs.chat().compile(checkpointer=saver)
    for text in ("hello", "again"):
        chat.invoke(graphs.say(text), thread("talk"))
    graphs.nested().compile(checkpointer=saver).invoke({"log": []}, thread("wait"))
    counting = graphs.counting(3).compile(checkpointer=saver)
    counting.invoke({"log": []}, thread("branch"))
    history = list(counting.get_state_history(thread("branch")))
    counting.invoke(None, history[2].config)


def test_everything_is_taken_over_and_goes_on_where_it_was(theirs, quick):
    source, saver = theirs
    filled(saver)

    report = quick.import_from(source)

    assert report.is_complete
    assert everything(quick) == everything(saver)
    assert report.imported.checkpoints == report.found["checkpoints"]
    assert report.found["checkpoints"] == len(everything(saver))
    assert report.found["threads"] == 3
    assert report.found["writes"] > 20
    graph = graphs.nested().compile(checkpointer=quick)
    state = graph.invoke(Command(resume="yes"), thread("wait"))
    assert state["log"] == ["first", "first", "before", "yes", "after", "last"]
    talk = (
        graphs.chat()
        .compile(checkpointer=quick)
        .invoke(graphs.say("still there?"), thread("talk"))
    )
    assert graphs.texts(talk)[::2] == ["hello", "again", "still there?"]


def test_the_newest_of_the_source_is_the_newest_here(theirs, quick):
    source, saver = theirs
    filled(saver)

    quick.import_from(source)

    for name in ("talk", "wait", "branch"):
        newest = quick.get_tuple(thread(name))
        assert newest.checkpoint["id"] == saver.get_tuple(thread(name)).checkpoint["id"]
    listed = [item.config["configurable"]["thread_id"] for item in quick.list(None)]
    assert listed[0] == "branch"


def test_a_dry_run_says_the_same_and_writes_nothing(theirs, quick):
    source, saver = theirs
    filled(saver)

    dry = quick.import_from(source, dry_run=True)
    empty = list(quick.list(None))
    report = quick.import_from(source)

    assert empty == []
    assert (dry.imported, dry.found) == (report.imported, report.found)
    assert str(dry).startswith("would import 4 threads, ")


def test_a_second_import_adds_only_what_is_new(theirs, quick):
    source, saver = theirs
    filled(saver)
    before = quick.import_from(source).imported
    graphs.chat().compile(checkpointer=saver).invoke(graphs.say("new"), thread("talk"))

    report = quick.import_from(source)

    assert (report.imported.threads, report.imported.checkpoints) == (1, 3)
    assert report.already_there.checkpoints == before.checkpoints
    assert everything(quick) == everything(saver)


def test_a_thread_that_was_used_here_since_is_left_alone(sqlite, quick):
    source, saver = sqlite
    filled(saver)
    quick.import_from(source)
    chat = graphs.chat()
    chat.compile(checkpointer=quick).invoke(graphs.say("here"), thread("talk"))
    chat.compile(checkpointer=saver).invoke(graphs.say("there"), thread("talk"))

    report = quick.import_from(source)

    [conflict] = report.conflicts
    assert "thread 'talk': was used here since" in str(conflict)
    texts = graphs.texts(quick.get_tuple(thread("talk")).checkpoint["channel_values"])
    assert texts[4:] == ["here", "You said: here"]


def test_a_thread_that_was_deleted_here_is_not_brought_back(sqlite, quick):
    source, saver = sqlite
    filled(saver)
    quick.import_from(source)
    quick.delete_thread("talk")

    report = quick.import_from(source)

    assert "was deleted here" in str(report.conflicts[0])
    assert quick.get_tuple(thread("talk")) is None


def test_the_source_is_left_as_it_is(sqlite, quick):
    source, saver = sqlite
    filled(saver)
    saver.conn.execute("pragma wal_checkpoint(truncate)")
    before = {name: os.stat(name).st_mtime_ns for name in (source, f"{source}-wal")}

    quick.import_from(source)

    after = {name: os.stat(name).st_mtime_ns for name in (source, f"{source}-wal")}
    assert after == before


def test_what_is_only_in_the_log_beside_the_file_is_taken_over(sqlite, quick):
    source, saver = sqlite
    saver.conn.execute("pragma wal_autocheckpoint = 0")
    filled(saver)

    quick.import_from(source)

    assert os.path.getsize(f"{source}-wal") > 0
    assert everything(quick) == everything(saver)


def test_a_file_that_is_written_to_all_the_time_is_refused(sqlite, quick, monkeypatch):
    source, saver = sqlite
    filled(saver)
    copyfile = shutil.copyfile

    def slowly(*paths):
        copyfile(*paths)
        put(saver, thread("meanwhile"), {"x": [1]})

    monkeypatch.setattr(shutil, "copyfile", slowly)
    with pytest.raises(holdfast.FormatMismatch, match="is being written to"):
        quick.import_from(source)


def test_progress_is_told(sqlite, quick):
    source, saver = sqlite
    filled(saver)
    total = len(list(saver.list(None)))
    told = []

    quick.import_from(source, progress=lambda *call: told.append(call))
    quick.import_from(source, progress=lambda *call: told.append(call))

    assert told[:total] == [(n, total) for n in range(1, total + 1)]
    assert told[-1] == (total, total)


# --- types ----------------------------------------------------------------------------


def test_a_class_that_is_not_allowed_is_reported_and_stops_nothing_else(theirs, quick):
    source, saver = theirs
    put(saver, thread("good"), {"x": [1]})
    put(saver, thread("bad"), {"x": [Plan(3)]})

    report = quick.import_from(source)

    [damaged] = report.damaged
    assert f"{__name__}.Plan, which is not allowed here" in str(damaged)
    assert "allow=[...]" in str(damaged)
    assert quick.get_tuple(thread("good")) is not None
    assert quick.get_tuple(thread("bad")) is None


def test_a_class_that_is_allowed_is_taken_over(theirs):
    source, saver = theirs
    put(saver, thread("t"), {"x": [Plan(3)]})

    with HoldfastSaver(":memory:", allow=[Plan]) as quick:
        assert quick.import_from(source).is_complete

        found = quick.get_tuple(thread("t"))

    assert found.checkpoint["channel_values"] == {"x": [Plan(3)]}


def replaced(saver, kind, data):
    """Put other bytes in the place of a checkpoint."""
    config = put(saver, thread("t"))
    with saver.conn:
        saver.conn.execute(
            "update checkpoints set type = ?, checkpoint = ?", (kind, data)
        )
    return config["configurable"]["checkpoint_id"]


def test_a_tampered_row_makes_nothing_run(sqlite, quick, tmp_path):
    source, saver = sqlite
    mark = tmp_path / "executed"
    call = ormsgpack.packb(("os", "system", f"touch {mark}"))
    checkpoint = {**empty_checkpoint(), "channel_values": {"x": ormsgpack.Ext(0, call)}}
    replaced(saver, "msgpack", ormsgpack.packb(checkpoint))

    report = quick.import_from(source)

    assert "holds the type os.system" in str(report.damaged[0])
    assert not mark.exists()


def test_pickle_is_not_read(sqlite, quick):
    source, saver = sqlite
    replaced(saver, "pickle", b"cos\nsystem\n(S'true'\ntR.")

    report = quick.import_from(source)

    assert "is stored as 'pickle', which is not read here" in str(report.damaged[0])


def test_damage_is_reported_and_stops_nothing_else(sqlite, quick):
    source, saver = sqlite
    replaced(saver, "msgpack", b"\xc1")
    put(saver, thread("other"), {"x": 1})

    report = quick.import_from(source)

    assert "cannot be decoded" in str(report.damaged[0])
    assert report.imported.checkpoints == 1


def test_the_json_of_early_versions_is_read(sqlite, quick):
    source, saver = sqlite
    module = ["langchain_core", "messages", "ai", "AIMessage"]
    early = [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", "HumanMessage"],
            "kwargs": {"content": "hello", "type": "human"},
        },
        {"lc": 2, "type": "constructor", "id": module, "kwargs": {"content": "hi"}},
        {"lc": "no constructor"},
    ]
    checkpoint = {**empty_checkpoint(), "channel_values": {"messages": early}}
    replaced(saver, "json", json.dumps(checkpoint).encode())

    report = quick.import_from(source)

    assert report.is_complete
    found = quick.get_tuple(thread("t")).checkpoint["channel_values"]["messages"]
    assert found == [HumanMessage("hello"), AIMessage("hi"), early[2]]


def test_what_an_early_checkpoint_was_to_send_is_found_among_the_writes(theirs, quick):
    source, saver = theirs
    first = put(saver, thread("t"), checkpoint={"v": 3})
    saver.put_writes(first, [("__pregel_tasks", Send("work", 1)), ("x", 2)], "task")
    put(saver, first, {"x": [2]}, checkpoint={"v": 3})

    quick.import_from(source)

    found = quick.get_tuple(thread("t")).checkpoint
    assert found["channel_values"]["__pregel_tasks"] == [Send("work", 1)]
    assert found["channel_versions"]["__pregel_tasks"] == 1


def test_a_database_from_before_there_were_paths_is_read(sqlite, quick):
    source, saver = sqlite
    config = put(saver, thread("t"))
    saver.put_writes(config, [("x", 1)], "task", "path")
    with saver.conn:
        columns = "thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type"
        saver.conn.execute(f"create table early as select {columns}, value from writes")
        saver.conn.execute("drop table writes")
        saver.conn.execute("alter table early rename to writes")

    quick.import_from(source)

    assert quick.get_tuple(thread("t")).pending_writes == [("task", "x", 1)]


def test_writes_without_a_checkpoint_are_taken_over(theirs, quick):
    source, saver = theirs
    checkpoint = empty_checkpoint()
    config = thread("t", checkpoint_ns="", checkpoint_id=checkpoint["id"])
    saver.put_writes(config, [("x", 1)], "task")

    quick.import_from(source)
    put(quick, thread("t"), checkpoint=checkpoint)

    assert quick.get_tuple(thread("t")).pending_writes == [("task", "x", 1)]


# --- what is not LangGraph's ----------------------------------------------------------


def test_a_file_that_is_not_there_is_said_to_be_missing(quick, tmp_path):
    with pytest.raises(holdfast.NotFound, match="there is no file"):
        quick.import_from(tmp_path / "nothing")


@pytest.mark.parametrize("content", [b"", b"not a database at all" * 100])
def test_a_file_without_checkpoints_is_refused(quick, tmp_path, content):
    (tmp_path / "other").write_bytes(content)

    with pytest.raises(holdfast.FormatMismatch, match="no checkpoints of LangGraph"):
        quick.import_from(tmp_path / "other")


def test_a_database_without_checkpoints_is_refused(quick, server):
    with pytest.raises(holdfast.FormatMismatch, match="no checkpoints of LangGraph"):
        quick.import_from(f"{server}?options=-csearch_path%3Dpg_catalog")


def test_secrets_of_an_address_are_not_reported(postgres, quick):
    source, _ = postgres

    report = quick.import_from(source.replace("holdfast@", "holdfast:secret@"))

    assert "secret" not in str(report)
    assert report.path.startswith("postgresql://127.0.0.1/")


def test_a_server_that_does_not_answer_is_named_without_secrets(quick):
    with pytest.raises(holdfast.NotFound, match="cannot be reached") as refused:
        quick.import_from("postgresql://me:secret@127.0.0.1:1/agents")

    assert "secret" not in str(refused.value)


# --- through the store ----------------------------------------------------------------


def test_any_store_takes_them_over_without_being_told_the_format(theirs, place):
    source, saver = theirs
    filled(saver)
    url, options = place

    with holdfast.open(url, **options) as store:
        report = store.import_from(source)

        assert report.is_complete
        assert report.format == "langgraph"
        assert everything(HoldfastSaver(store)) == everything(saver)


def test_a_store_that_is_awaited_takes_them_over(theirs, place):
    source, saver = theirs
    filled(saver)
    url, options = place

    async def taken_over():
        async with holdfast.open_async(url, **options) as store:
            return await store.import_from(source, format="langgraph")

    report = asyncio.run(taken_over())

    assert report.imported.checkpoints == len(list(saver.list(None)))


def test_a_saver_that_is_awaited_takes_them_over_with_what_it_allows(theirs, place):
    source, saver = theirs
    put(saver, thread("t"), {"x": [Plan(3)]})
    url, options = place

    async def taken_over():
        opening = HoldfastSaver.from_conn_string(url, allow=[Plan], **options)
        async with opening as awaited:
            return await awaited.aimport_from(source)

    assert asyncio.run(taken_over()).is_complete


def test_the_command_line_takes_them_over(theirs, tmp_path):
    source, saver = theirs
    filled(saver)
    path = str(tmp_path / "agents.db")

    ran = subprocess.run(
        [sys.executable, "-m", "holdfast", "--store", path, "import", source],
        check=True,
        capture_output=True,
        text=True,
    )

    assert "imported 4 threads" in ran.stdout
    with HoldfastSaver(path) as quick:
        assert everything(quick) == everything(saver)


def test_an_address_is_refused_for_the_formats_of_files():
    with (
        holdfast.open(":memory:") as store,
        pytest.raises(holdfast.Unsupported, match="give a file or a folder"),
    ):
        store.import_from("postgresql://a/b", format="smooth")


def test_without_langgraph_the_missing_extra_is_named(sqlite, tmp_path):
    source, saver = sqlite
    filled(saver)
    program = (
        "import sys; sys.modules['langgraph'] = None; import holdfast\n"
        "with holdfast.open(':memory:') as store:\n"
        "    try: store.import_from(sys.argv[1])\n"
        "    except holdfast.Unsupported as error: print(error)\n"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program, source],
        check=True,
        capture_output=True,
        text=True,
    )

    assert ran.stdout.strip().endswith("pip install 'holdfast[langgraph]'")


def test_a_database_in_a_folder_is_imported_beside_what_else_is_there(
    memory, sqlite, tmp_path
):
    path, saver = sqlite
    filled(saver)
    source("smooth", tmp_path / "agents")
    expected = everything(saver)

    report = memory.import_from(tmp_path)

    assert [part.format for part in report.parts] == ["langgraph", "smooth"]
    assert report.parts[0].path == path
    assert report.is_complete
    assert report.parts[1].imported.checkpoints == 5
    assert everything(HoldfastSaver(memory)) == expected
