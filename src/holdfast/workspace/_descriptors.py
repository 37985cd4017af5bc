"""Files and folders below a folder, reached through descriptors that follow no links.

A path is opened part by part, each relative to the descriptor before it. A symbolic
link that another process puts in the place of a folder is therefore an error, and never
a way out of the workspace.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator

from holdfast.errors import Corrupt


def _flags(*names: str) -> int:
    """Some flags of `os`; Windows has no workspaces and few of them."""
    return sum(getattr(os, name, 0) for name in names)


FOLDER = _flags("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
# Without O_NONBLOCK a pipe in the place of a file would stop the reader.
READ = _flags("O_RDONLY", "O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK")
NEW = _flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW", "O_CLOEXEC")
PIECE = 1 << 20


@contextlib.contextmanager
def opened(name: str | bytes, flags: int, at: int, mode: int = 0o600) -> Generator[int]:
    """The descriptor of a file or folder in the folder ``at``."""
    descriptor = os.open(name, flags, mode, dir_fd=at)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def parent(top: int, path: bytes) -> Generator[tuple[int, bytes]]:
    """The folder that a path is in, and the name of the path in that folder."""
    *folders, name = path.split(b"/")
    _refuse_ways_out([name])
    with folder(top, folders) as found:
        yield found, name


@contextlib.contextmanager
def folder(top: int, parts: list[bytes]) -> Generator[int]:
    """The descriptor of a folder below ``top``."""
    _refuse_ways_out(parts)
    found = os.dup(top)
    try:
        for part in parts:
            inner = os.open(part, FOLDER, dir_fd=found)
            os.close(found)
            found = inner
        yield found
    finally:
        os.close(found)


def _refuse_ways_out(parts: list[bytes]) -> None:
    """Refuse a part that no list may have; whatever checks lists, nothing gets out."""
    if not {b"", b".", b".."}.isdisjoint(parts):
        raise Corrupt("a path of a workspace", f"it has the parts {parts!r:.200}")


def pieces(descriptor: int) -> Iterator[bytes]:
    """The content of an open file; the place where it is read otherwise stays."""
    place = 0
    while piece := os.pread(descriptor, PIECE, place):
        yield piece
        place += len(piece)


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of the bytes; a single write may take fewer."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
