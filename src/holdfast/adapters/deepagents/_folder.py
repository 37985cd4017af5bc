"""Backends over a real folder, which is saved after every change."""

from __future__ import annotations

from typing import TypedDict, Unpack

from deepagents.backends import FilesystemBackend, LocalShellBackend
from deepagents.backends.protocol import (
    DeleteResult,
    EditResult,
    ExecuteResponse,
    FileUploadResponse,
    WriteResult,
)

import holdfast
from holdfast.errors import Conflict, NotFound
from holdfast.workspace import Tree, Workspace

KIND = "deepagents"
# The length of a command in the metadata of its checkpoint.
MOST_SHOWN = 200


class ShellOptions(TypedDict, total=False):
    """The options of deepagents' `LocalShellBackend`."""

    timeout: int
    max_output_bytes: int
    env: dict[str, str] | None
    inherit_env: bool


class HoldfastFolder(FilesystemBackend):
    """deepagents' `FilesystemBackend` over the folder of a `Workspace`.

    After each write, edit, delete and upload the folder is saved as a checkpoint of the
    thread, with what other programs changed in it; ``workspace.restore`` brings it
    back. Files that the rules of the workspace ignore are written, but not saved.
    """

    def __init__(self, thread: holdfast.Thread, workspace: Workspace) -> None:
        super().__init__(root_dir=workspace.path, virtual_mode=True)
        self.thread, self.workspace = thread, workspace

    def write(self, file_path: str, content: str) -> WriteResult:
        """Write a file, and save the folder."""
        result = super().write(file_path, content)
        save(self.thread, self.workspace, f"write {file_path}")
        return result

    def edit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
    ) -> EditResult:
        """Replace a text in a file, and save the folder."""
        result = super().edit(file_path, old_string, new_string, replace_all)
        save(self.thread, self.workspace, f"edit {file_path}")
        return result

    def delete(self, file_path: str) -> DeleteResult:
        """Remove a file or a folder, and save the folder."""
        result = super().delete(file_path)
        save(self.thread, self.workspace, f"delete {file_path}")
        return result

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Write some files, and save the folder."""
        found = super().upload_files(files)
        save(self.thread, self.workspace, f"upload {len(files)} files")
        return found


class HoldfastShell(HoldfastFolder, LocalShellBackend):
    """A `HoldfastFolder` with deepagents' shell, which is no sandbox.

    The folder is saved after every command that changed a file in it. A restore does
    not take back what a command did elsewhere. The options are those of
    `LocalShellBackend`.
    """

    def __init__(
        self,
        thread: holdfast.Thread,
        workspace: Workspace,
        **options: Unpack[ShellOptions],
    ) -> None:
        root = workspace.path
        LocalShellBackend.__init__(self, root_dir=root, virtual_mode=True, **options)
        self.thread, self.workspace = thread, workspace

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        """Run a command, and save the folder."""
        result = super().execute(command, timeout=timeout)
        save(self.thread, self.workspace, f"execute {command[:MOST_SHOWN]}")
        return result


def save(thread: holdfast.Thread, workspace: Workspace, what: str) -> None:
    """Save the files of a folder, unless they are those of the head."""
    snapshot = workspace.scan()
    if _files(thread).entries == snapshot.tree.entries:
        return
    about = {KIND: what}
    try:
        thread.extend({}, files=snapshot, metadata=about)
    except Conflict as conflict:
        if conflict.code != "file_changed":
            raise
        # Another program changed a file after the comparison: the save scans again.
        thread.extend({}, files=workspace, metadata=about)


def _files(thread: holdfast.Thread) -> Tree:
    try:
        return thread.files()
    except NotFound:
        return Tree()
