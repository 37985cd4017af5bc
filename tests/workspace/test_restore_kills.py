"""Restores that are killed, cut off from power, out of space or not alone."""

from __future__ import annotations

import functools

import pytest

import holdfast
from holdfast.testing.trials.children import Child
from holdfast.workspace import Workspace
from programs.kill_restore import build
from support.effort import THOROUGH
from support.programs import run_program
from support.system_calls import BrokenCalls
from support.workspaces import files_of, write

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("how", ["kill", "cut", "full", "filled"])
def test_a_restore_that_breaks_at_any_call_is_whole_after_the_next_opening(
    tmp_path, how
):
    """SIGKILL, a power cut, and a disk that is full once or for good."""
    for state in (0, 1):
        place = tmp_path / str(state)
        place.mkdir()
        [found] = run_program("kill_restore", place, how, state)

        assert found["wrong"] == []
        assert found["calls"] > 30


def test_two_processes_that_restore_at_once_exclude_one_another(tmp_path):
    rounds = 40 if THOROUGH else 6

    [found] = run_program("rival_restores", tmp_path, rounds)

    assert found == {"whole": True, "kept": True, "wrong": 0}


def undo(place, at, _tell):
    """Take a restore back, and be killed at a system call."""
    broken = BrokenCalls(at, "kill")
    with holdfast.open(place / "store.db") as store:
        workspace = Workspace(place / "project")
        broken.install()
        workspace.undo(store.thread("agent"))


@pytest.fixture
def interrupted(tmp_path):
    """A folder to which an undo brought the files, and not the state to the thread."""
    for at in range(20, 60, 4):
        place = tmp_path / str(at)
        place.mkdir()
        first, second = build(place)
        with holdfast.open(place / "store.db") as store:
            thread, workspace = store.thread("agent"), Workspace(place / "project")
            workspace.restore(thread, "label:first", state=True)
            Child(functools.partial(undo, place, at)).wait()
            workspace = Workspace(place / "project")
            if (files_of(workspace.path), thread.load()) == (second, {"turn": 1}):
                return place, first
    raise AssertionError("no kill came between the files and the state")


def test_after_an_interrupted_undo_the_files_of_the_head_can_be_restored(interrupted):
    place, first = interrupted
    with holdfast.open(place / "store.db") as store:
        thread, workspace = store.thread("agent"), Workspace(place / "project")

        report = workspace.restore(thread, "@", state=True)

        assert files_of(place / "project") == first
        assert thread.load() == {"turn": 1}
        # What the undo had brought is kept, and can be had again.
        assert report.recovery.kind == "recovery"
        thread.save({"turn": 3}, files=workspace)


def test_what_was_changed_after_an_interrupted_undo_is_not_overwritten(interrupted):
    place, _ = interrupted
    write(place / "project" / "changed.txt", "by hand")
    before = files_of(place / "project")
    with holdfast.open(place / "store.db") as store:
        thread, workspace = store.thread("agent"), Workspace(place / "project")

        with pytest.raises(holdfast.Conflict) as refused:
            workspace.restore(thread, "@", state=True)

    assert refused.value.code == "files_changed"
    assert refused.value.paths == ("changed.txt",)
    assert files_of(place / "project") == before
