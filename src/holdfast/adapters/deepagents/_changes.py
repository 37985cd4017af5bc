"""A changed tree, which a thread saves as the files of its next checkpoint."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable, Iterator
from typing import TypeVar

import holdfast
from holdfast.errors import Conflict, NotFound
from holdfast.workspace import FileEntry, Tree

T = TypeVar("T")
NEW_FILE = stat.S_IFREG | 0o644
# The number of attempts at a change while other writers are first. Of all writers that
# try at once, one succeeds in each round.
ATTEMPTS = 100


class ChangedTree:
    """The files of a head with some changes; a `Snapshot` that a save takes."""

    def __init__(self, tree: Tree) -> None:
        self._before = tree
        self._entries = dict(tree.entries)
        self._contents: dict[bytes, bytes] = {}

    @property
    def tree(self) -> Tree:
        """The files with the changes."""
        return Tree(self._entries, self._before.rules, self._before.omitted)

    @property
    def is_changed(self) -> bool:
        """True if any file differs."""
        return self._entries != self._before.entries

    def put(self, path: bytes, content: bytes) -> None:
        """Write a file; an existing file keeps its permissions."""
        before = self._entries.get(path)
        mode = before.mode if before else NEW_FILE
        digest = hashlib.sha256(content).digest()
        self._entries[path] = FileEntry(path, mode, len(content), digest)
        self._contents[path] = content

    def remove(self, path: bytes) -> None:
        """Remove a file."""
        del self._entries[path]

    def content(self, path: bytes) -> Iterator[bytes]:
        """The content of a written file; the other contents are stored already."""
        yield self._contents[path]


class Head:
    """The files of a thread at its newest checkpoint."""

    def __init__(self, thread: holdfast.Thread) -> None:
        self.thread = thread
        self.checkpoint = thread.head
        self.tree = self._tree()

    def _tree(self) -> Tree:
        try:
            return self.thread.files(self.checkpoint) if self.checkpoint else Tree()
        except NotFound as error:
            if error.code != "no_files":
                raise
            return Tree()

    def read(self, entries: list[FileEntry]) -> list[bytes]:
        """The contents of some files, in one request."""
        paths = [entry.path for entry in entries]
        return self.thread.read_files(paths, self.checkpoint or "@") if paths else []


def change(
    thread: holdfast.Thread,
    make: Callable[[Head, ChangedTree], T],
    metadata: dict[str, object],
) -> T:
    """Make a change and save it, again and again while other writers are first."""
    for _ in range(ATTEMPTS):
        head = Head(thread)
        changed = ChangedTree(head.tree)
        made = make(head, changed)
        if not changed.is_changed:
            return made
        try:
            expect = head.checkpoint
            thread.extend({}, files=changed, metadata=metadata, expect=expect)
        except Conflict as conflict:
            if conflict.code != "head_moved":
                raise
        else:
            return made
    raise Conflict(
        f"other writers changed thread {thread.id!r} {ATTEMPTS} times in between;"
        " try again",
        thread=thread.id,
    )
