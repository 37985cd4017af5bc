"""The files of checkpoints on the command line."""

from __future__ import annotations

import json
import os

import pytest

import holdfast
from holdfast.cli import main
from support.snapshots import MemorySnapshot

OLD = {"src/a.py": b"x = 1\ny = 2\n", "gone": b"1"}
NEW = {"src/a.py": b"x = 1\ny = 3\n", "binary": bytes(5000)}


@pytest.fixture
def run(tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)
    with holdfast.open("agents.db") as store:
        for n, files in enumerate((OLD, NEW)):
            store.thread("chat").save({"n": n}, files=MemorySnapshot(files))

    def run(command):
        status = main(command.split())
        said = capfdbinary.readouterr()
        return status, said.out or said.err

    return run


def test_show_prints_a_file_as_it_is(run):
    assert run("show chat@1:src/a.py") == (0, OLD["src/a.py"])
    assert run("show chat:binary") == (0, bytes(5000))
    assert json.loads(run("show chat:binary --json")[1])["size"] == 5000


def test_show_says_what_there_is_not(run):
    status, said = run("show chat:nothing")

    assert status == 3
    assert b"chat:nothing" in said


def test_the_log_marks_the_checkpoints_that_changed_files(run):
    with holdfast.open("agents.db") as store:
        store.thread("chat").save({"n": 3})
        store.thread("chat").save({"n": 4}, files=MemorySnapshot(NEW))
        store.thread("chat").save({"n": 5}, files=MemorySnapshot(OLD))

    marked = [line.endswith(b"files") for line in run("log chat")[1].splitlines()]
    document = json.loads(run("log chat --json")[1])

    assert marked[-5:] == [True, False, False, True, True]
    assert ["files" in each for each in document["checkpoints"]] == marked[-5:]


def test_the_preview_of_a_rewind_lists_files(run):
    said = run("rewind chat@1 --dry-run")[1].decode()
    document = json.loads(run("rewind chat@1 --dry-run --json")[1])

    assert "file added: gone" in said
    assert "file changed: src/a.py" in said
    assert "the folder stays as it is" in said
    assert [change["path"] for change in document["files"]] == [
        "binary",
        "gone",
        "src/a.py",
    ]


def test_diff_shows_the_files_that_differ(run):
    status, said = run("diff chat@1 --files")

    assert status == 0
    assert said.decode().splitlines()[1:] == [
        "added binary  5.0 kB",
        "removed gone  1 B",
        "changed src/a.py  12 B",
        "  @@ -1,2 +1,2 @@",
        "   x = 1",
        "  -y = 2",
        "  +y = 3",
    ]


def test_diff_of_files_can_be_limited_and_tells_whether_they_differ(run):
    limited = json.loads(run("diff chat@1 --files --path src --json")[1])

    assert [change["path"] for change in limited["files"]] == ["src/a.py"]
    assert run("diff chat@1 --files --path src --exit-code")[0] == 1
    assert run("diff chat@1 --files --path sr --exit-code")[0] == 0
    assert b"no file differs" in run("diff chat@2 --files")[1]


def test_documents_name_files_that_are_not_utf8(run):
    name = os.fsdecode(b"caf\xe9")
    with holdfast.open("agents.db") as store:
        store.thread("chat").save({"n": 3}, files=MemorySnapshot({**NEW, name: b"1"}))

    status, said = run("diff chat@2 --files --json")

    assert status == 0
    assert [file["path"] for file in json.loads(said)["files"]] == ["caf\\xe9"]
