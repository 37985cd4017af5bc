"""What all importers have in common: once, whole, and never over other work."""

import asyncio
import contextlib
import os
import sqlite3
import subprocess
import sys
from datetime import timedelta

import pytest

import holdfast
from holdfast import FormatMismatch, NotFound, Unstorable, Unsupported
from holdfast.importers import Counts, formats, import_from
from holdfast.testing import raises
from support.import_sources import (
    FORMATS,
    SOURCES,
    fingerprint,
    imported,
    read,
    sessions_database,
    smooth_database,
    smooth_records,
    source,
    spoken_sessions,
    write,
)
from support.programs import run_program

MARK = "\ufeff".encode()


def everything(store):
    """All that a store holds, by thread and checkpoint."""
    return {
        (thread.id, checkpoint.id): (checkpoint.seq, store.load(checkpoint))
        for thread in store.threads(limit=None)
        for checkpoint in store.thread(thread.id).history(None, all=True)
    }


def json_files(path):
    return sorted(path.rglob("*.json")) if path.is_dir() else [path]


# --- once -----------------------------------------------------------------------------


@pytest.mark.parametrize("format_", FORMATS)
def test_the_format_is_told_from_the_files(memory, tmp_path, format_):
    report = import_from(memory, source(format_, tmp_path))

    assert report.format == format_
    assert report.is_complete
    assert imported(memory, format_)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_second_import_saves_nothing_and_says_so(memory, tmp_path, format_):
    path = source(format_, tmp_path)
    first = import_from(memory, path)
    before = everything(memory)

    second = import_from(memory, path)

    assert everything(memory) == before
    assert second.imported == Counts()
    assert second.already_there == first.imported
    assert "already there" in str(second)


@pytest.mark.parametrize("format_", FORMATS)
def test_a_dry_run_reports_the_same_and_writes_nothing(memory, tmp_path, format_):
    path = source(format_, tmp_path)

    trial = import_from(memory, path, dry_run=True)

    assert everything(memory) == {}
    assert memory.changes().items == ()
    done = import_from(memory, path)
    assert str(trial).replace("would import", "imported") == str(done)
    assert trial.found == done.found


@pytest.mark.parametrize("format_", FORMATS)
def test_the_source_stays_as_it_is(memory, tmp_path, format_):
    path = source(format_, tmp_path / "folder")
    before = fingerprint(path)

    import_from(memory, path)

    assert fingerprint(path) == before


@pytest.mark.parametrize("format_", FORMATS)
def test_the_store_is_sound_afterwards(path, tmp_path, format_):
    with holdfast.open(path, compress=True) as store:
        import_from(store, source(format_, tmp_path))

        assert store.verify().problems == ()


@pytest.mark.parametrize("format_", FORMATS)
def test_through_the_async_door_it_is_awaited(path, tmp_path, format_):
    files = source(format_, tmp_path)

    async def both():
        async with holdfast.open_async(path) as store:
            return await import_from(store, files), await import_from(store, files)

    first, second = asyncio.run(both())

    assert first.is_complete
    assert second.already_there == first.imported


def test_a_policy_of_the_store_is_not_applied_by_the_times_of_a_source(tmp_path):
    policy = {"retention": holdfast.Retention(last=1), "prune_every": timedelta(0)}
    with holdfast.open(":memory:", **policy) as store:
        import_from(store, source("echo", tmp_path))

        assert store.conversations.thread("user-alice-session-1").step == 3
        assert len(store.conversations.thread("user-alice-session-1").history()) == 3


# --- and never over other work --------------------------------------------------------


@pytest.mark.parametrize("format_", FORMATS)
def test_a_head_that_was_moved_since_stays_where_it_is(memory, tmp_path, format_):
    path = source(format_, tmp_path)
    import_from(memory, path)
    for thread, _ in imported(memory, format_):
        memory.thread(thread.id).save({"mine": True, "messages": []})
    before = everything(memory)

    report = import_from(memory, path)

    assert everything(memory) == before
    assert report.imported == Counts()
    assert report.is_complete


@pytest.mark.parametrize("format_", FORMATS)
def test_a_thread_of_the_same_name_is_a_conflict_and_stops_nothing(
    memory, tmp_path, format_
):
    path = source(format_, tmp_path)
    with holdfast.open(":memory:") as other:
        import_from(other, path)
        names = [thread for thread, _ in imported(other, format_)]
    taken = names[0]
    start = {"kind": taken.kind, "owner": taken.owner, "agent": taken.agent}
    memory.thread(taken.id, **start).save({"mine": True, "messages": []})

    report = import_from(memory, path)

    assert memory.thread(taken.id).load() == {"mine": True, "messages": []}
    assert "not from this source" in report.conflicts[0].reason
    assert len(imported(memory, format_)) == len(names) - 1


@pytest.mark.parametrize("format_", FORMATS)
def test_what_was_deleted_is_not_brought_back(memory, tmp_path, format_):
    path = source(format_, tmp_path)
    import_from(memory, path)
    gone = [thread.id for thread, _ in imported(memory, format_)]
    memory.delete(*gone)

    report = import_from(memory, path)

    assert imported(memory, format_) == []
    assert len([f for f in report.conflicts if "deleted" in f.reason]) >= len(gone)


def test_a_session_that_was_worked_on_does_not_get_what_came_later(memory, tmp_path):
    path = source("echo", tmp_path)
    whole = read(path)
    write(path, {name: saves[:2] for name, saves in whole.items()})
    import_from(memory, path)
    memory.conversations.add("user-alice-session-1", {"role": "user", "content": "me"})
    write(path, whole)

    report = import_from(memory, path)

    assert "worked on since" in report.conflicts[0].reason
    chat = memory.conversations.load("user-alice-session-1")
    assert chat.messages[-1] == {"role": "user", "content": "me"}


def test_a_session_that_grew_gets_what_came_later(memory, tmp_path):
    path = source("echo", tmp_path)
    whole = read(path)
    write(path, {name: saves[:1] for name, saves in whole.items()})
    import_from(memory, path)
    write(path, whole)

    report = import_from(memory, path)

    assert report.is_complete
    assert (report.imported.checkpoints, report.already_there.checkpoints) == (3, 3)
    assert memory.conversations.thread("user-alice-session-1").step == 3


def test_an_imported_thread_that_was_rewound_is_left_where_it_is(memory, tmp_path):
    path = source("echo", tmp_path)
    import_from(memory, path)
    thread = memory.conversations.thread("user-alice-session-1")
    thread.rewind("@~1")
    longer = read(path)
    extra = longer["user-alice-session-1"][-1] | {"checkpoint_id": "new"}
    longer["user-alice-session-1"].append(extra)
    write(path, longer)

    report = import_from(memory, path)

    assert thread.step == 2
    assert len(report.conflicts) == 1


def test_a_checkpoint_that_changed_in_the_source_is_a_conflict(memory, tmp_path):
    path = source("echo", tmp_path)
    import_from(memory, path)
    changed = read(path)
    changed["user-alice-session-1"][0]["summary"] = "other"
    write(path, changed)

    report = import_from(memory, path)

    assert "other content" in report.conflicts[0].reason
    assert memory.conversations.load("user-alice-session-1", "@~2").summary is None


def test_checkpoints_that_retention_removed_are_not_put_on_top(memory, tmp_path):
    path = source("echo", tmp_path)
    import_from(memory, path)
    memory.prune(holdfast.Retention(last=1))

    report = import_from(memory, path)

    assert report.imported == Counts()
    assert "older than what is there" in report.conflicts[0].reason


@pytest.mark.processes
@pytest.mark.parametrize("format_", ["aether", "smooth"])
def test_an_import_killed_anywhere_is_completed_by_running_it_again(tmp_path, format_):
    path = source(format_, tmp_path / "source")
    (tmp_path / "stores").mkdir()

    [report] = run_program("kill_import", tmp_path / "stores", path)

    assert report["wrong"] == []
    assert report["points"] >= 5


# --- several formats ------------------------------------------------------------------


FOUND_IN_A_FOLDER = "aether, cortex, echo, smooth, smooth-sqlite, openai-agents, oxios"


def mixed(folder):
    """All samples in one folder, as programs that share it would leave them."""
    for format_ in SOURCES:
        found = source(format_, folder / "samples" / format_)
        for entry in sorted(found.iterdir()) if found.is_dir() else [found]:
            os.renames(entry, folder / "state" / entry.name)
    others = [
        {**r, "conversation": {**r["conversation"], "id": f"d-{r['id']}"}}
        for r in smooth_records()
    ]
    smooth_database(folder / "state" / "checkpoints.db", others)
    sessions_database(folder / "state" / "sessions.db", spoken_sessions())
    return folder / "state"


def test_a_folder_of_several_formats_is_imported_format_by_format(memory, tmp_path):
    alone = {
        name: import_from(holdfast.open(":memory:"), source(name, tmp_path / name))
        for name in FORMATS
    }
    folder = mixed(tmp_path)
    before = fingerprint(folder)

    report = import_from(memory, folder)

    assert {part.format for part in report.parts} == set(FORMATS)
    for part in report.parts:
        assert part.found == alone[part.format].found
        assert part.imported.checkpoints == alone[part.format].imported.checkpoints
        assert part.damaged == part.conflicts == ()
    assert report.imported.checkpoints == sum(
        part.imported.checkpoints for part in report.parts
    )
    assert report.format == FOUND_IN_A_FOLDER
    assert report.is_complete
    assert fingerprint(folder) == before
    again = import_from(memory, folder)
    assert (again.imported, again.already_there) == (Counts(), report.imported)


def test_the_report_of_several_formats_shows_each(memory, tmp_path):
    report = import_from(memory, mixed(tmp_path), dry_run=True)

    lines = str(report).splitlines()
    assert lines[0].endswith(f"/state ({FOUND_IN_A_FOLDER})")
    assert [line for line in lines if line.startswith("would import")][1:] == [
        str(part).splitlines()[0] for part in report.parts
    ]
    assert memory.threads().items == ()


def test_what_is_damaged_among_several_formats_is_reported_once(memory, tmp_path):
    folder = mixed(tmp_path)
    (folder / "agent-1" / "broken.json").write_text('{"agent_id": 1, "conversation"')
    (folder / "readme.txt").write_text("hello")
    (folder / "torn.db").write_bytes((folder / "checkpoints.db").read_bytes()[:5000])

    report = import_from(memory, folder)

    assert [os.path.basename(f.path) for f in report.damaged] == ["broken.json"]
    names = [os.path.basename(f.path) for f in report.ignored]
    assert names.count("readme.txt") == names.count("torn.db") == 1
    assert set(names) == {"readme.txt", "torn.db", "list_metadata.json"}


def test_smooth_files_of_which_a_folder_of_documents_has_some_are_not_documents(
    memory, tmp_path
):
    source("smooth", tmp_path)
    source("oxios", tmp_path)
    os.rename(tmp_path / "files", tmp_path / "oxios" / "agents")

    smooth, oxios = import_from(memory, tmp_path / "oxios").parts

    assert (smooth.format, oxios.format) == ("smooth", "oxios")
    assert smooth.imported.checkpoints == 5
    assert oxios.found == {"sessions": 3, "memory": 3, "knowledge/rust": 1}
    assert import_from(memory, tmp_path / "oxios", format="oxios").imported.documents


# --- what cannot be told --------------------------------------------------------------


def test_a_path_that_is_not_there_is_not_found(memory, tmp_path):
    with raises(NotFound):
        import_from(memory, tmp_path / "nothing")


@pytest.mark.parametrize("path", ["", "a\0b", 7, None, b"bytes"])
def test_a_path_must_be_one(memory, path):
    with raises(Unstorable):
        import_from(memory, path)


def test_files_of_no_known_format_are_refused_with_the_list_of_formats(
    memory, tmp_path
):
    (tmp_path / "notes.txt").write_text("hello")

    with raises(FormatMismatch, "unknown_format") as refused:
        import_from(memory, tmp_path)

    assert all(name in str(refused.error) for name in FORMATS)


def test_a_file_that_looks_like_two_formats_is_refused(memory, tmp_path):
    both = tmp_path / "both.db"
    names = "thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id"
    with contextlib.closing(sqlite3.connect(both)) as db:
        db.execute(
            f"create table checkpoints (agent_id, conversation, iteration, {names})"
        )

    with raises(FormatMismatch, "unknown_format") as refused:
        import_from(memory, both)

    assert "langgraph or smooth-sqlite" in str(refused.error)


def test_an_unknown_format_is_refused_with_the_list_of_formats(memory, tmp_path):
    with raises(Unsupported) as refused:
        import_from(memory, tmp_path, format="unheard-of")

    assert all(name in str(refused.error) for name in formats())


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("given", [*FORMATS, "nothing"])
def test_a_wrong_format_reports_and_never_raises(memory, tmp_path, format_, given):
    path = tmp_path if given == "nothing" else source(given, tmp_path)
    before = fingerprint(tmp_path)

    import_from(memory, path, format=format_)

    assert fingerprint(tmp_path) == before
    assert memory.verify().problems == ()


def test_a_store_that_is_read_only_can_be_asked_what_would_be(path, tmp_path):
    files = source("echo", tmp_path / "files")
    holdfast.open(path).close()
    with holdfast.open(path, read_only=True) as store:
        assert import_from(store, files, dry_run=True).imported.checkpoints == 6

        with raises(Unsupported):
            import_from(store, files)


# --- odd files ------------------------------------------------------------------------


@pytest.mark.parametrize("format_", SOURCES)
def test_a_byte_order_mark_is_passed_over(memory, tmp_path, format_):
    path = source(format_, tmp_path)
    for file in json_files(path):
        file.write_bytes(MARK + file.read_bytes())

    report = import_from(memory, path)

    assert report.format == format_
    assert report.is_complete


@pytest.mark.parametrize("format_", SOURCES)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        bytes(100),
        b"NaN",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xff\xfe{}",
        b'{"a": 1e999}',
        b'{"a": 1, "a": 2}',
        b'"\xed\xa0\x80"',
        b"1" * 10_000,
        b"{",
        b"null",
    ],
    ids=range(12),
)
def test_a_file_of_nonsense_is_named_and_hides_no_other(
    memory, tmp_path, format_, content
):
    path = source(format_, tmp_path)
    broken = json_files(path)[-1]
    broken.write_bytes(content)

    report = import_from(memory, path, format=format_)

    assert str(broken) in {finding.path for finding in report.damaged}
    assert broken.read_bytes() == content
    others = [file for file in json_files(path) if file != broken]
    assert bool(report.imported.checkpoints) == bool(others)


@pytest.mark.parametrize("format_", [f for f in SOURCES if f != "echo"])
def test_links_and_special_files_are_not_followed(memory, tmp_path, format_):
    path = source(format_, tmp_path / "inside")
    first = json_files(path)[0]
    outside = tmp_path / "outside.json"
    os.rename(first, outside)
    os.symlink(outside, first)
    os.mkfifo(first.parent / "pipe.json")
    os.symlink(tmp_path, path / "up")
    os.symlink("nowhere", path / "dangling")

    report = import_from(memory, path, format=format_)

    names = {os.path.basename(finding.path) for finding in report.ignored}
    assert {first.name, "pipe.json", "up", "dangling"} <= names
    assert not report.damaged


def test_a_link_that_was_given_is_followed(memory, tmp_path):
    path = source("smooth", tmp_path / "files")
    os.symlink(path, tmp_path / "link")

    report = import_from(memory, tmp_path / "link")

    assert report.imported.checkpoints == 5


@pytest.mark.parametrize("format_", FORMATS)
def test_a_pipe_is_not_waited_for(memory, tmp_path, format_):
    os.mkfifo(tmp_path / "pipe")

    report = import_from(memory, tmp_path / "pipe", format=format_)

    assert report.imported == Counts()


@pytest.mark.parametrize("format_", [f for f in SOURCES if f != "echo"])
def test_a_file_that_is_too_large_is_named(memory, tmp_path, format_):
    path = source(format_, tmp_path)
    huge = json_files(path)[0].with_name("huge.json")
    with open(huge, "wb") as file:
        file.truncate(2 << 30)

    report = import_from(memory, path, format=format_)

    [damage] = [f for f in report.damaged if f.path == str(huge)]
    assert "2147483648 bytes" in damage.reason
    assert report.imported.checkpoints


@pytest.mark.parametrize("format_", ["cortex", "oxios", "smooth"])
def test_names_of_files_may_be_any_bytes(memory, tmp_path, format_):
    path = source(format_, tmp_path)
    first = json_files(path)[0]
    os.rename(first, os.fsencode(first.parent) + b"/\xff\n;.json")

    report = import_from(memory, path, format=format_)

    assert report.is_complete
    assert str(report).encode()
    assert import_from(memory, path, format=format_).imported == Counts()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(memory, tmp_path):
    path = source("smooth", tmp_path)
    json_files(path)[0].chmod(0)

    report = import_from(memory, path)

    assert "cannot be read" in report.damaged[0].reason


def test_a_state_that_is_too_deep_to_keep_is_named(memory, tmp_path):
    path = source("cortex", tmp_path)
    deep = read(path / "checkpoint_1.json")
    deep["state"] = {}
    for _ in range(250):
        deep["state"] = {"deeper": deep["state"]}
    write(path / "checkpoint_1.json", deep)
    trial = import_from(memory, path, dry_run=True)

    report = import_from(memory, path)

    assert "levels deep" in report.damaged[0].reason
    assert report.damaged == trial.damaged
    assert report.imported == trial.imported == Counts(threads=1, checkpoints=1)


def test_a_file_that_changes_meanwhile_is_named(memory, tmp_path):
    path = source("smooth", tmp_path)
    files = json_files(path)

    def progress(done, total):
        record = read(files[3])
        write(files[3], record | {"iteration": 99})

    report = import_from(memory, path, progress=progress)

    assert "changed while" in report.damaged[0].reason
    assert report.imported.checkpoints == 4


# --- telling --------------------------------------------------------------------------


@pytest.mark.parametrize("format_", FORMATS)
def test_progress_counts_every_checkpoint_once(memory, tmp_path, format_):
    seen = []

    report = import_from(
        memory, source(format_, tmp_path), progress=lambda *step: seen.append(step)
    )

    total = report.imported.checkpoints + report.imported.agent_checkpoints
    assert seen == [(n + 1, total) for n in range(total)]


def test_a_progress_that_raises_stops_the_import_between_checkpoints(memory, tmp_path):
    path = source("smooth", tmp_path)

    def progress(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_from(memory, path, progress=progress)

    assert import_from(memory, path).already_there.checkpoints == 2


def test_a_report_reads_like_a_report(memory, tmp_path):
    path = source("oxios", tmp_path)
    (path / "memory/bad.json").write_text("{")

    shown = str(import_from(memory, path)).splitlines()

    assert shown[0] == (
        "imported 3 conversations, 4 documents, 7 checkpoints, 5 messages"
        f" from {path} (oxios)"
    )
    assert shown[1] == "damaged:"
    assert shown[2].startswith(f"  {path}/memory/bad.json: is not JSON")
    assert shown[3] == "inferred:"


PLUGIN = """
from pathlib import Path

from holdfast.importers import Line, Reading, Save

def recognises(path):
    return path.endswith(".lines")

def read(path):
    reading = Reading()
    with reading.attempt(path):
        for number, text in enumerate(Path(path).read_text().splitlines()):
            state = {"messages": [{"role": "user", "content": text}]}
            save = Save(at=number, path=path, digest=text, state=lambda s=state: s)
            reading.put(Line(kind="conversation", id="lines"), save)
            reading.count("lines")
    return reading
"""


def test_a_package_can_add_a_format(memory, tmp_path, monkeypatch):
    about = tmp_path / "lines-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lines\nVersion: 1\n")
    (about / "entry_points.txt").write_text(
        "[holdfast.importers]\nlines = plug_lines\n"
    )
    (tmp_path / "plug_lines.py").write_text(PLUGIN)
    (tmp_path / "chat.lines").write_text("one\ntwo\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    report = import_from(memory, tmp_path / "chat.lines")

    assert "lines" in formats()
    assert (report.format, report.found) == ("lines", {"lines": 2})
    assert memory.conversations.load("lines").messages[0]["content"] == "two"
    sys.modules.pop("plug_lines")


def test_opening_a_store_does_not_load_the_importers():
    program = "import sys, holdfast; holdfast.open; print(*sys.modules)"

    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert holdfast.open.__module__ in ran.stdout.split()
    assert "holdfast.importers" not in ran.stdout.split()
