"""A folder of files that belongs to a state: saved with it, and brought back with it.

`Workspace` scans a folder for ``thread.save(state, files=workspace)`` and restores what
a checkpoint has of it. It needs the extra ``workspace``.
"""

import os

from holdfast._values.files import FileEntry, Omitted, Snapshot, Tree, TreeChanges
from holdfast.errors import Unsupported

if os.name == "nt":
    raise Unsupported(
        "workspaces need folders that are opened by descriptors, which Windows does not"
        " have; use the Windows Subsystem for Linux"
    )

from holdfast.workspace._report import RestoreReport
from holdfast.workspace._snapshot import FolderSnapshot
from holdfast.workspace._workspace import HowToRestore, Workspace

__all__ = [
    "FileEntry",
    "FolderSnapshot",
    "HowToRestore",
    "Omitted",
    "RestoreReport",
    "Snapshot",
    "Tree",
    "TreeChanges",
    "Workspace",
]
