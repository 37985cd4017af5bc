"""The differences between two trees, file by file: lines of text, or sizes."""

from __future__ import annotations

import difflib
from typing import Literal

import msgspec

# Comparing lines takes long in larger files: for these, only the sizes are given.
LARGEST_TEXT = 1 << 20

FileOp = Literal["added", "removed", "changed", "mode changed"]


class FileChange(msgspec.Struct, frozen=True):
    """A file in which two trees differ.

    ``lines`` are those of a unified diff, for texts that were changed; other files have
    only their sizes, ``None`` where there is no file.
    """

    op: FileOp
    path: str
    old_size: int | None = None
    new_size: int | None = None
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        sizes = " -> ".join(
            f"{size:,} bytes"
            for size in (self.old_size, self.new_size)
            if size is not None
        )
        return "\n".join([f"{self.op} {self.path} ({sizes})", *self.lines])


def changed_lines(old: bytes, new: bytes) -> tuple[str, ...]:
    """The lines of a unified diff; none if one of the contents is not text."""
    if max(len(old), len(new)) > LARGEST_TEXT:
        return ()
    texts = [as_text(content) for content in (old, new)]
    if texts[0] is None or texts[1] is None:
        return ()
    before, after = (text.splitlines() for text in texts if text is not None)
    return tuple(difflib.unified_diff(before, after, lineterm=""))[2:]


def as_text(content: bytes) -> str | None:
    """A content as text; ``None`` if it is not text."""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
