"""The files of a handle on a thread: listing, reading and comparing them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast._api.runner import AsyncRunner, Runner
from holdfast._engine.files import draft
from holdfast._engine.threads import file_changes, files
from holdfast._engine.threads.lineage import Reference
from holdfast._values import files as file_values
from holdfast._values.records import Checkpoint
from holdfast._values.reference import HEAD

if TYPE_CHECKING:  # modules that `holdfast log` need not load
    from holdfast._engine.files.draft import FilesDraft
    from holdfast._engine.threads.files import FilePath
    from holdfast._engine.threads.save import SaveOptions
    from holdfast._values.file_diff import FileChange
    from holdfast._values.files import Tree


class ThreadFiles:
    """The files that were saved with the checkpoints of a thread."""

    _runner: Runner
    id: str

    def files(self, ref: Reference = HEAD) -> Tree:
        """The files at a checkpoint: a mapping of paths, and what was left out.

        A checkpoint that was saved without ``files`` has those of its parent.
        `NotFound` if none were saved on its line.
        """
        return self._runner.run(files.files, self.id, ref)

    def read_file(self, path: FilePath, ref: Reference = HEAD) -> bytes:
        """The content of a file at a checkpoint; of a symbolic link, its target."""
        return self._runner.run(files.read_file, self.id, path, ref)

    def read_files(
        self, paths: Sequence[FilePath], ref: Reference = HEAD
    ) -> list[bytes]:
        """`read_file` for several files in one request, in the order of the paths."""
        return self._runner.run(files.read_files, self.id, paths, ref)

    def diff_files(
        self, a: Reference, b: Reference = HEAD, *, path: FilePath | None = None
    ) -> tuple[FileChange, ...]:
        """The files that differ from ``a`` to ``b``, by path: lines of text, or sizes.

        ``path`` is a file or a folder, to compare no others. Lines are those of texts
        up to 1 MB, and of so many files as have 16 MB together. A checkpoint without
        files is compared as one with none.
        """
        return self._runner.run(file_changes.difference, self.id, a, b, path=path)

    def blame_file(self, path: FilePath, at: Reference = HEAD) -> Checkpoint:
        """The checkpoint that last changed a file, on the line to ``at``."""
        return self._runner.run(file_changes.blame, self.id, path, at)


class AsyncThreadFiles:
    """Like `ThreadFiles`, awaited."""

    _runner: AsyncRunner
    id: str

    async def files(self, ref: Reference = HEAD) -> Tree:
        return await self._runner.run(files.files, self.id, ref)

    async def read_file(self, path: FilePath, ref: Reference = HEAD) -> bytes:
        return await self._runner.run(files.read_file, self.id, path, ref)

    async def read_files(
        self, paths: Sequence[FilePath], ref: Reference = HEAD
    ) -> list[bytes]:
        return await self._runner.run(files.read_files, self.id, paths, ref)

    async def diff_files(
        self, a: Reference, b: Reference = HEAD, *, path: FilePath | None = None
    ) -> tuple[FileChange, ...]:
        return await self._runner.run(file_changes.difference, self.id, a, b, path=path)

    async def blame_file(self, path: FilePath, at: Reference = HEAD) -> Checkpoint:
        return await self._runner.run(file_changes.blame, self.id, path, at)


async def scanned(runner: AsyncRunner, options: SaveOptions) -> SaveOptions:
    """The options of a save, with a snapshot taken in a thread if one is needed."""
    source = options.get("files")
    if source is None:
        return options
    return {**options, "files": await draft_of(runner, source)}


async def draft_of(runner: AsyncRunner, source: object) -> FilesDraft:
    """The draft of ``files`` for async callers: folders are read in a thread."""
    if runner.never_suspends or not isinstance(
        source, draft.Scannable | file_values.Snapshot
    ):
        return draft.FilesDraft.of(source)
    if isinstance(source, draft.Scannable):
        contents = draft.FolderContents(await _in_thread(source.scan), source.scan)
    else:
        contents = draft.FolderContents(source)
    if not runner.context.backend.blocking:
        # Over a blocking backend the save runs in a thread anyway.
        contents.reading = _in_thread
    return draft.FilesDraft(contents)


async def _in_thread(read: Callable[[], Any]) -> Any:
    import asyncio  # noqa: PLC0415 - the sync API does not need it

    return await asyncio.to_thread(read)
