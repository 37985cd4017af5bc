"""Restoring the files and the state of a thread on the command line."""

from __future__ import annotations

import json

import pytest

import holdfast
from holdfast.cli import main
from support.workspaces import files_of, write

GOOD = {"a.txt": (0o644, "good"), "sub/b.txt": (0o644, "b")}
BAD = {"a.txt": (0o644, "bad"), "c.txt": (0o644, "c")}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A workspace with a good and a bad checkpoint; the current folder is below it."""
    folder = tmp_path / "project"
    write(folder / "a.txt", "good")
    write(folder / "sub" / "b.txt", "b")
    with holdfast.open(tmp_path / "store.db") as store:
        thread, workspace = store.thread("coder"), holdfast.Workspace(folder)
        thread.save({"turn": 1}, files=workspace, label="good")
        write(folder / "a.txt", "bad")
        (folder / "sub" / "b.txt").unlink()
        (folder / "sub").rmdir()
        write(folder / "c.txt", "c")
        thread.save({"turn": 2}, files=workspace)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def cli(tmp_path, capsys):
    def run(*arguments, status=0):
        store = str(tmp_path / "store.db")
        assert main([*arguments, "--store", store]) == status
        return capsys.readouterr().out

    return run


def state(tmp_path):
    with holdfast.open(tmp_path / "store.db") as store:
        return store.thread("coder").load()["turn"]


def test_files_and_state_of_a_thread_go_back_and_forward(cli, folder, tmp_path):
    preview = cli("restore", "coder", "label:good", "-n").splitlines()
    assert preview[1:] == ["  ~ a.txt", "  ~ sub/b.txt", "  - c.txt"]
    assert (files_of(folder), state(tmp_path)) == (BAD, 2)

    done = json.loads(cli("restore", "coder", "label:good", "--yes", "--json"))
    assert (files_of(folder), state(tmp_path)) == (GOOD, 1)
    assert done["removed"] == ["c.txt"]

    cli("restore", "coder", done["recovery"], "--yes")
    assert (files_of(folder), state(tmp_path)) == (BAD, 2)


def test_only_files_only_the_state_or_only_some_paths(cli, folder, tmp_path):
    cli("restore", "coder", "label:good", "--path", "a.txt", "--yes")
    assert files_of(folder) == BAD | {"a.txt": (0o644, "good")}
    assert state(tmp_path) == 2

    cli("restore", "coder", "label:good", "--files", "--yes")
    assert (files_of(folder), state(tmp_path)) == (GOOD, 2)

    assert "no file is changed" in cli("restore", "coder", "@1", "--state", "-n")
    cli("restore", "coder", "label:good", "--state", "--yes")
    assert (files_of(folder), state(tmp_path)) == (GOOD, 1)


def test_files_into_another_folder(cli, folder, tmp_path):
    other = tmp_path / "other"

    cli("restore", "coder", "label:good", "--into", str(other), "--yes")

    assert files_of(other) == GOOD
    assert (files_of(folder), state(tmp_path)) == (BAD, 2)


def test_changed_files_are_shown_and_refused_without_force(cli, folder, tmp_path):
    write(folder / "a.txt", "mine")

    preview = cli("restore", "coder", "label:good", "-n")
    assert "! a.txt was changed since the last snapshot" in preview
    cli("restore", "coder", "label:good", "--yes", status=5)
    assert (folder / "a.txt").read_text() == "mine"

    cli("restore", "coder", "label:good", "--yes", "--force")
    assert files_of(folder) == GOOD


def test_a_folder_that_is_no_workspace_has_to_be_named(cli, folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(elsewhere)
        cli("restore", "coder", "label:good", "--yes", status=2)
        cli("restore", "coder", "@1", "--workspace", str(folder), "--yes")
    assert files_of(folder) == GOOD


def test_a_thread_needs_a_checkpoint(cli, folder):
    cli("restore", "coder", status=2)


def test_a_repository_is_written_only_if_its_path_is_given(cli, tmp_path):
    write(tmp_path / "source" / ".git" / "config", "x")
    write(tmp_path / "source" / "main.py", "x")
    source = holdfast.Workspace(tmp_path / "source", ignore=["!.git"])
    with holdfast.open(tmp_path / "store.db") as store:
        store.thread("coder").save({}, files=source)
    to = tmp_path / "to"

    for preview in ("--dry-run", "--yes"):
        found = cli("restore", "coder", "@1", "--into", str(to), preview)
        assert "  .git stays: a repository, restored only if paths (--path)" in found
    assert set(files_of(to)) == {"main.py"}
    path = str(to / ".git")
    cli("restore", "coder", "@1", "--into", str(to), "--path", path, "--yes")
    assert set(files_of(to)) == {"main.py", ".git/config"}
