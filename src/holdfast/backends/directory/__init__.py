"""A store as a folder of JSON Lines files, one for each family, to read and to commit.

The files are the truth. Beside them is an index, a SQLite database that answers every
request and can be made again from the files at any time. A change is made in a
transaction of the index, written to the files and synced, and only then committed.
"""

from __future__ import annotations

from holdfast.backends.directory._backend import DirectoryBackend
from holdfast.backends.directory._files import Files
from holdfast.backends.directory._folder import Folder
from holdfast.backends.directory._index import FileIndex
from holdfast.backends.directory._pending_view import PendingView
from holdfast.backends.directory._read_only import MemoryIndex
from holdfast.errors import Unsupported

__all__ = ["DirectoryBackend", "Files", "open_directory"]


def open_directory(
    path: str,
    *,
    read_only: bool = False,
    durability: str = "full",  # noqa: ARG001 - an option that every store has
    busy_timeout: float = 5.0,
    compress: bool = False,
    vfs: str | None = None,
    files: Files | None = None,
) -> DirectoryBackend:
    """A folder as a store.

    ``durability`` makes no difference: every line is synced before it is acknowledged.
    ``vfs`` is the SQLite VFS of the index, ``files`` what is done to all other files:
    tests let both fail.
    """
    if compress:
        raise Unsupported(
            f"{path} is kept as text to be read; open it without compress=True"
        )
    files = files or Files()
    index = (
        MemoryIndex(PendingView(path, files, busy_timeout), vfs)
        if read_only
        else FileIndex(Folder(path, files, busy_timeout))
    )
    return DirectoryBackend(index, busy_timeout=busy_timeout, vfs=vfs)
