"""Every change that a restore makes to a folder, one method each.

Tests put a disk that fails, or that kills the process, in its place.
"""

from __future__ import annotations

import os

from holdfast.workspace import _descriptors


class Disk:
    """Changes of files and folders, through the descriptors of their folders."""

    def write(self, at: int, name: str, data: bytes, mode: int) -> None:
        """Write a new file, and sync it."""
        with _descriptors.opened(name, _descriptors.NEW, at) as file:
            _descriptors.write_all(file, data)
            os.fchmod(file, mode)
            os.fsync(file)

    def symlink(self, at: int, name: str, target: bytes) -> None:
        """Make a symbolic link."""
        os.symlink(target, name, dir_fd=at)

    def link(self, at: int, name: bytes | str, to: int, new: bytes | str) -> None:
        """Give a file a second name, which must be free."""
        os.link(name, new, src_dir_fd=at, dst_dir_fd=to, follow_symlinks=False)

    def rename(self, at: int, name: bytes | str, to: int, new: bytes | str) -> None:
        """Give a file another name; a file that has that name is replaced."""
        os.rename(name, new, src_dir_fd=at, dst_dir_fd=to)

    def unlink(self, at: int, name: bytes | str) -> None:
        """Remove a name."""
        os.unlink(name, dir_fd=at)

    def mkdir(self, at: int, name: bytes | str, mode: int = 0o777) -> None:
        """Make a folder."""
        os.mkdir(name, mode, dir_fd=at)

    def rmdir(self, at: int, name: bytes | str) -> None:
        """Remove an empty folder."""
        os.rmdir(name, dir_fd=at)

    def chmod(self, folder: int, mode: int) -> None:
        """Set the permissions of a folder."""
        os.fchmod(folder, mode)

    def sync(self, folder: int) -> None:
        """Make the names in a folder durable."""
        os.fsync(folder)
