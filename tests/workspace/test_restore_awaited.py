"""Restoring with an `AsyncThread`: the same, awaited."""

from __future__ import annotations

import asyncio

import pytest

import holdfast
from holdfast.workspace import Workspace
from inner.workspace import Disk
from support.workspaces import files_of, write


async def saved(store, folder, workspace):
    thread = store.thread("agent")
    write(folder / "a.txt", "one")
    first = await thread.save({"turn": 1}, files=workspace)
    write(folder / "a.txt", "two")
    await thread.save({"turn": 2}, files=workspace)
    return thread, first


def test_restore_and_undo_are_awaited(folder, workspace, tmp_path):
    async def main():
        async with await holdfast.open_async(tmp_path / "store.db") as store:
            thread, first = await saved(store, folder, workspace)
            seen = [await workspace.restore(thread, first, dry_run=True)]
            await workspace.restore(thread, first, state=True)
            seen += [(folder / "a.txt").read_text(), await thread.load()]
            await workspace.undo(thread)
            return [*seen, (folder / "a.txt").read_text(), await thread.load()]

    preview, *states = asyncio.run(main())

    assert preview.written == ("a.txt",)
    assert states == ["one", {"turn": 1}, "two", {"turn": 2}]


def test_tasks_that_restore_at_once_take_turns(folder, workspace, tmp_path):
    async def main():
        async with await holdfast.open_async(tmp_path / "store.db") as store:
            thread, first = await saved(store, folder, workspace)
            second = await thread.head
            await asyncio.gather(
                *(workspace.restore(thread, each) for each in (first, second) * 4)
            )
            kept = await thread.files()
            return kept.entries == workspace.scan().tree.entries

    assert asyncio.run(main())
    assert files_of(folder)["a.txt"] in [(0o644, "one"), (0o644, "two")]


class SlowDisk(Disk):
    """Cancels the restore when the files are about to be exchanged."""

    def __init__(self, cancel):
        self.cancel = cancel

    def link(self, *arguments):
        self.cancel()
        super().link(*arguments)


def test_a_restore_that_is_cancelled_is_undone(folder, workspace, tmp_path):
    async def main():
        async with await holdfast.open_async(tmp_path / "store.db") as store:
            thread, first = await saved(store, folder, workspace)
            loop = asyncio.get_running_loop()
            task = asyncio.ensure_future(workspace.restore(thread, first))
            workspace._disk = SlowDisk(lambda: loop.call_soon_threadsafe(task.cancel))
            with pytest.raises(asyncio.CancelledError):
                await task
            return await thread.load()

    assert asyncio.run(main()) == {"turn": 2}
    assert (folder / "a.txt").read_text() == "two"
    assert not (folder / ".holdfast" / "restore").exists()
    assert Workspace(folder).scan().tree.entries.keys() == {b"a.txt"}
