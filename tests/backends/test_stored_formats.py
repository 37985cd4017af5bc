"""What earlier versions stored is read, verified and continued by this one.

tests/fixtures says which version wrote each store; beside it is what that version read.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import apsw
import pytest

import holdfast
from holdfast.cli import main
from holdfast.testing import raises
from inner.archive import VERSION
from inner.directory import FORMAT as FOLDER_FORMAT
from inner.engine import ALONE, BLOCK, PACKED_BLOCK, WITH_DICTIONARY
from inner.keys import FORMS
from inner.postgres import FORMAT as SERVER_FORMAT
from inner.sql import PACKED
from inner.sqlite import FORMAT as FILE_FORMAT
from inner.values import PLAIN
from support import servers
from support.everything import Source, build, changes_of, content, say, tools
from support.folders import FIXTURES
from support.stored_formats import (
    KINDS,
    Expected,
    copied,
    is_archive,
    is_on_server,
    opened,
    options_of,
    stored,
    unpacked,
)

SMOKE = "format-1/server.sql.xz"
PRESENT = {
    "file": FILE_FORMAT,
    "folder": FOLDER_FORMAT,
    "server": SERVER_FORMAT,
    "archive": VERSION,
}
# It came with format 6, in one commit.
NEVER_WRITTEN = {("file", 5)}


def marked(name):
    """A store as a parameter; its id says what needs a server."""
    marks = [pytest.mark.smoke] if name == SMOKE else []
    id = f"postgres-{name}" if is_on_server(name) else name
    return pytest.param(name, id=id, marks=marks)


MARKED = list(map(marked, stored()))


@pytest.fixture(params=MARKED)
def name(request):
    """The folder and the name of a store that was kept."""
    return request.param


@pytest.fixture
def place(name, tmp_path):
    """The address of a copy of it."""
    server = servers.shared(servers.NAMES[-1]) if is_on_server(name) else ""
    with copied(name, tmp_path, server) as address:
        yield address


def as_json(value):
    return json.loads(json.dumps(value))


def test_everything_is_read_as_by_the_version_that_wrote_it(name, place, tmp_path):
    expected = Expected(name)

    with opened(name, place, tmp_path) as store:
        found = as_json(content(store))
        changes = changes_of(store)
        problems = store.verify(seal=expected.seal).problems

    for part in expected.content.keys() | found.keys():
        assert found.get(part) == expected.content.get(part)
    assert changes == expected.changes or is_archive(name)
    assert problems == ()


def test_it_can_be_continued_and_read_again(name, place, tmp_path):
    before = Expected(name).content
    grown = next(id for id in ("chat", "a", "values") if id in before["threads"])

    with opened(name, place, tmp_path) as store:
        store.thread(grown).append(messages=[say(1)])
        store.thread(grown).undo()
        store.thread(grown).redo()
        go_on(store, before, is_whole=not is_archive(name))
    with opened(name, place, tmp_path) as store:
        found = as_json(content(store))["threads"]
        messages = store.thread(grown).load()["messages"]
        problems = store.verify().problems

    before = before["threads"]
    assert len(found[grown]["checkpoints"]) == len(before[grown]["checkpoints"]) + 1
    assert messages[-1] == say(1)
    assert problems == ()
    same = [id for id in before if id != grown and not id.startswith(CHANGED)]
    assert {id: found[id] for id in same} == {id: before[id] for id in same}


# What `go_on` works on.
CHANGED = ("agent:", "checkpoints:", "conversation:", "pin:")


def go_on(store, before, *, is_whole):
    """Continue an agent, a loop that was killed, and what must not be continued."""
    if "planner" in before["agents"]:
        talk = before["conversations"]["trip-7"]["messages"]
        store.conversations.add("trip-7", holdfast.Message.user("Cancel it"))
        *added, last = content(store)["conversations"]["trip-7"]["messages"]
        assert (as_json(added), last[1]) == (talk, "Cancel it")
        store.agents.restore("planner", "before-booking")
        checkpoints = store.agents.checkpoints("planner")
        [then] = [c.messages for c in checkpoints if c.name == "before-booking"]
        talks = store.conversations.list(agent="planner", limit=None)
        assert sum(talk.messages for talk in talks) == then
    if "refunds" in before["conversations"]:
        assert not store.thread("chat").consume("approval:42")
        run = store.conversations.recorder("refunds", tools=tools())
        assert [call.name for call in run.interrupted()] == ["send_mail"]
    if "values" in before["threads"] and is_whole:  # an archive has only what is there
        for deleted in ("gone", "erased"):
            with raises(holdfast.Conflict):
                store.thread(deleted).append(messages=[1])


@pytest.mark.parametrize("name", [m for m in MARKED if not is_archive(m.values[0])])
def test_reading_alone_changes_nothing(name, place, tmp_path):
    refusal = refused(name)
    before = files_in(tmp_path)

    if refusal is None:
        with opened(name, place, tmp_path, read_only=True) as store:
            assert as_json(content(store)) == Expected(name).content
    else:
        with raises(refusal), opened(name, place, tmp_path, read_only=True):
            pass

    assert files_in(tmp_path) == before


def refused(name):
    """What is raised where a store has to be brought up to date to be read."""
    refusals = {"file": holdfast.Unsupported, "server": holdfast.NotFound}
    return None if is_present(name) else refusals.get(number_in(name)[0])


def files_in(folder):
    """The files of a folder but for what stands beside a store while it is open."""
    return {
        path: path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-wal", "-shm", "-lock"))
    }


COMMANDED = [n for n in stored() if n.endswith((".db.xz", ".tar.xz"))]


@pytest.mark.parametrize("name", [n for n in COMMANDED if "owner-keys" not in n])
def test_commands_work_on_it(name, place, tmp_path, monkeypatch, capsys):
    key = options_of(name, tmp_path).get("key")
    if key is not None:
        (tmp_path / "key").write_bytes(key)
        (tmp_path / "key").chmod(0o600)
        monkeypatch.setenv("HOLDFAST_KEY_FILE", str(tmp_path / "key"))
    if refused(name):
        with opened(name, place, tmp_path):
            pass

    exported = str(tmp_path / "exported.hfa")
    commands = [["log", "value"], ["show", "value"], ["verify"], ["export", exported]]
    found = {command[0]: main([*command, "--store", place]) for command in commands}

    assert found == {"log": 0, "show": 0, "verify": 0, "export": 0}
    assert "a single value" in capsys.readouterr().out


def test_the_same_calls_store_what_they_stored_before(tmp_path):
    [name] = [n for n in stored() if n.endswith("/file.db.xz") and is_present(n)]
    source = Source()

    with holdfast.open(tmp_path / "new.db", **source.options()) as store:
        (tmp_path / "files").mkdir()
        build(store, source, tmp_path / "files")
        found = as_json(content(store))

    assert found == Expected(name).content


# --- numbers --------------------------------------------------------------------------


def number_in(name):
    """What carries a number in a stored store, and that number."""
    path = FIXTURES / name
    content = unpacked(path) if path.is_file() else b""
    if ".db" in name:
        return "file", int.from_bytes(content[60:64], "big")
    if ".sql" in name:
        rows = content.partition(b"INSERT INTO holdfast.migration VALUES")[2]
        rows = rows.partition(b";")[0]
        return "server", max(map(int, re.findall(rb"\((\d+),", rows)))
    if ".hfa" in name:
        return "archive", int(content.partition(b"\n")[0].split()[-1])
    content = content or (path / "store.jsonl").read_bytes()
    return "folder", int(re.findall(rb'"format": ?(\d+)', content)[0])


def is_present(name):
    return number_in(name) in PRESENT.items()


HEADER = rb'"check":"[^"]+"(?:,"form":(\d+))?}'


def form_of_keys(name):
    """The form of the keys in a stored file; the first is not written."""
    [number] = re.findall(HEADER, unpacked(FIXTURES / name))
    return int(number or 1)


def test_every_format_that_was_ever_written_has_a_store():
    found = set(map(number_in, stored())) | NEVER_WRITTEN

    assert found == {(kind, n + 1) for kind in PRESENT for n in range(PRESENT[kind])}


def test_the_present_format_has_a_store_of_every_kind():
    kept = {name.partition("/")[2] for name in stored() if is_present(name)}

    assert kept >= set(KINDS), "see tests/fixtures/write.py"


def test_every_form_of_keys_has_a_store():
    encrypted = [
        n for n in stored() if ".db" in n and re.search("encrypt|keys-form", n)
    ]

    assert {form_of_keys(name) for name in encrypted} == set(FORMS)


def test_every_form_of_segments_and_manifests_is_in_a_store(tmp_path):
    found, packed = set(), set()
    for name in stored():
        if ".db" in name:
            with (
                copied(name, tmp_path) as path,
                contextlib.closing(apsw.Connection(path)) as db,
            ):
                found |= {n for (n,) in db.execute("select packing from segment")}
                manifests = db.execute("select manifest from checkpoint")
                packed |= {manifest >= PACKED for (manifest,) in manifests}

    assert found == {PLAIN, ALONE, WITH_DICTIONARY, BLOCK, PACKED_BLOCK}
    assert packed == {True, False}


# --- what is not made any more --------------------------------------------------------


def test_a_compact_removes_the_dictionary_with_the_deleted_text_in_it(tmp_path):
    name = "format-1/dictionary.db.gz"
    with copied(name, tmp_path) as path:
        before = Path(path).read_bytes().count(b"heliotrope")

        with holdfast.open(path, compress=True) as store:
            store.compact()
            found = as_json(content(store))
            problems = store.verify().problems

        assert before
        assert Path(path).read_bytes().count(b"heliotrope") == 0
    assert found == Expected(name).content
    assert problems == ()


SALVAGED = ["format-1/agents.db.gz", "format-1/dictionary.db.gz", "format-3/file.db.xz"]


@pytest.mark.parametrize("name", SALVAGED)
def test_a_file_without_its_first_page_is_salvaged(name, place, tmp_path):
    whole = Path(place).read_bytes()
    Path(place).write_bytes(bytes(4096) + whole[4096:])

    holdfast.salvage(place, str(tmp_path / "saved.db"))

    with holdfast.open(tmp_path / "saved.db") as store:
        found = content(store)["threads"]
    expected = Expected(name).content["threads"]
    assert {id: thread.get("state") for id, thread in found.items()} == {
        id: thread.get("state") for id, thread in expected.items()
    }
