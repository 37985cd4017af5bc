"""Three-way merge of the files of two checkpoints, path by path. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import msgspec

from holdfast._values.files import FileEntry, Tree, TreeChanges, compare
from holdfast._values.merge import ABSENT, Decide, MergeConflict
from holdfast.diff import excerpt
from holdfast.errors import Unstorable


class FileName(msgspec.Struct, frozen=True):
    """The step of a path that leads to a file."""

    path: bytes

    def __repr__(self) -> str:
        return f"file {excerpt(os.fsdecode(self.path))}"


class MergedTree(msgspec.Struct, frozen=True):
    """The merged files, with ours where a conflict stays, and all conflicts.

    ``changes`` is what the merge changes for our side.
    """

    tree: Tree
    changes: TreeChanges
    conflicts: tuple[MergeConflict, ...]
    decided: tuple[MergeConflict, ...]


def merge_trees(trees: Sequence[Tree], decide: Decide) -> MergedTree:
    """The files out of a base, ours and theirs; what both changed is a conflict."""
    _, ours, theirs = trees
    merge = _TreeMerge(trees, decide)
    for path in sorted(ours.entries.keys() | theirs.entries.keys()):
        merge.take(path)
    for path in sorted(merge.entries):
        merge.settle_below(path)
    tree = Tree(merge.entries, ours.rules, ours.omitted)
    changes = compare(ours, tree)
    return MergedTree(tree, changes, tuple(merge.conflicts), tuple(merge.decided))


class _TreeMerge:
    def __init__(self, trees: Sequence[Tree], decide: Decide) -> None:
        self._trees, self._decide = trees, decide
        self.entries: dict[bytes, FileEntry] = {}
        self.conflicts: list[MergeConflict] = []
        self.decided: list[MergeConflict] = []

    def take(self, path: bytes) -> None:
        """Take a file from the side that changed it."""
        conflict = self._at(path)
        base, ours, theirs = conflict.base, conflict.ours, conflict.theirs
        if theirs in (ours, base):
            found = ours
        else:
            found = theirs if ours == base else self._value(conflict)
        if isinstance(found, FileEntry):
            self.entries[path] = found

    def settle_below(self, path: bytes) -> None:
        """Refuse a file above a file: one side made a folder of it."""
        for above in _above(path):
            found = self.entries.get(above)
            if found is None or path not in self.entries:
                continue
            # A folder that got content has no entry of its own.
            if found.is_directory or self._value(self._at(path)) is not ABSENT:
                del self.entries[above]
            else:
                del self.entries[path]

    def _at(self, path: bytes) -> MergeConflict:
        base, ours, theirs = (tree.entries.get(path, ABSENT) for tree in self._trees)
        return MergeConflict((FileName(path),), base, ours, theirs)

    def _value(self, conflict: MergeConflict) -> object:
        value = self._decide(conflict)
        if value is conflict:
            self.conflicts.append(conflict)
            return conflict.ours
        if value not in (conflict.base, conflict.ours, conflict.theirs, ABSENT):
            text = (
                f"{conflict.where} must be one of the sides of the conflict, or ABSENT"
            )
            raise Unstorable("resolve", text)
        self.decided.append(conflict)
        return value


def _above(path: bytes) -> Iterator[bytes]:
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path
