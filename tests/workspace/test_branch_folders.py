"""Explorations with a workspace: every branch has a folder of its own."""

from __future__ import annotations

import asyncio
import os

import pytest

import holdfast
from holdfast.testing import raises
from holdfast.workspace import Workspace


@pytest.fixture
def begun(thread, workspace, folder):
    (folder / "lib").mkdir()
    (folder / "lib" / "code.py").write_text("one")
    (folder / "kept.txt").write_text("kept")
    thread.save({"plan": 0}, files=workspace)
    return thread


def rewrite(branch):
    """Each branch writes its own number into the same file."""
    path = os.path.join(branch.workspace.path, "lib", "code.py")
    with open(path, "a", encoding="utf-8") as file:
        file.write(f" and {branch.number}")
    branch.thread.save({"plan": branch.number}, files=branch.workspace)


def number(branch):
    return branch.number


def test_branches_change_their_own_files_and_no_others(
    begun, threads, workspace, folder
):
    found = begun.explore(rewrite, n=3, score=number, workspace=workspace)

    assert {one.status for one in found} == {"finished"}
    assert (folder / "lib" / "code.py").read_text() == "one"
    for one in found:
        branch = threads(one.thread)
        assert branch.read_file("lib/code.py") == f"one and {one.number}".encode()
        assert branch.read_file("kept.txt") == b"kept"
    assert list(workspace.scan().tree) == ["kept.txt", "lib/code.py"]


def test_the_files_of_an_adopted_branch_are_brought_into_the_folder(
    begun, workspace, folder
):
    found = begun.explore(rewrite, n=2, score=number, workspace=workspace)
    found.adopt()

    workspace.restore(begun, "@", force=True)

    assert begun.load() == {"plan": 2}
    assert (folder / "lib" / "code.py").read_text() == "one and 2"


def test_a_branch_that_was_interrupted_goes_on_in_its_folder(begun, threads, workspace):
    def die(branch):
        rewrite(branch)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begun.explore(die, n=1, workspace=workspace)
    found = begun.explore(rewrite, n=1, workspace=workspace)

    branch = threads(found.best.thread)
    assert branch.read_file("lib/code.py") == b"one and 1 and 1"


def test_a_folder_that_a_kill_left_unfinished_is_made_again(begun, threads, workspace):
    paths = []

    def die_at_once(branch):
        paths.append(branch.workspace.path)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begun.explore(die_at_once, n=1, workspace=workspace)
    [path] = paths
    os.rename(path, f"{path}.new")  # as if the kill had come before the last step
    os.unlink(os.path.join(f"{path}.new", "kept.txt"))

    found = begun.explore(rewrite, n=1, workspace=workspace)

    branch = threads(found.best.thread)
    assert branch.read_file("kept.txt") == b"kept"
    assert branch.read_file("lib/code.py") == b"one and 1"


def test_without_files_in_the_checkpoint_the_branches_fail(thread, workspace):
    thread.save({"plan": 0})

    found = thread.explore(rewrite, n=1, workspace=workspace)

    assert found.branches[0].status == "failed"
    assert "no files" in found.branches[0].error


def test_what_is_no_workspace_is_refused(begun, folder):
    with raises(holdfast.Unstorable):
        begun.explore(rewrite, workspace=str(folder))


def test_awaited_branches_have_folders_too(folder):
    async def rewrite_awaited(branch):
        path = os.path.join(branch.workspace.path, "code.py")
        with open(path, "a", encoding="utf-8") as file:
            file.write(f" and {branch.number}")
        await branch.thread.save({"plan": 1}, files=branch.workspace)

    async def work():
        (folder / "code.py").write_text("one")
        workspace = Workspace(folder)
        async with await holdfast.open_async(":memory:") as store:
            chat = store.thread("chat")
            await chat.save({"plan": 0}, files=workspace)
            found = await chat.explore(rewrite_awaited, n=2, workspace=workspace)
            return [
                await store.thread(one.thread).read_file("code.py") for one in found
            ]

    assert asyncio.run(work()) == [b"one and 1", b"one and 2"]
