"""The files of a deep agent in a Holdfast store.

    deepagents                           Holdfast
    ----------                           --------
    backend                              files of a thread, ``deepagents:<thread id>``
                                         unless another is named
    /notes/plan.md                       file ``notes/plan.md`` of a checkpoint
    write, edit, delete, upload          one checkpoint; nothing if nothing changes
    ls, read, grep, glob, download       the files of the head
    FilesystemBackend, LocalShellBackend a folder; its `Workspace` is saved after every
                                         change and every command

The classes only translate; all state is in the store. Needs the extra:
``pip install 'holdfast[deepagents]'``.
"""

from __future__ import annotations

from holdfast.operations import import_extra

import_extra("deepagents.backends", "deepagents", "deepagents")

from holdfast.adapters.deepagents._backend import (  # noqa: E402 - see above
    HoldfastBackend,
)
from holdfast.adapters.deepagents._folder import (  # noqa: E402 - see above
    HoldfastFolder,
    HoldfastShell,
)

__all__ = ["HoldfastBackend", "HoldfastFolder", "HoldfastShell"]
