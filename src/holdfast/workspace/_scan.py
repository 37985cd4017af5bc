"""Scanning a folder: the walk, the index in memory and in its file, the tree."""

from __future__ import annotations

import contextlib
import os

from holdfast._values.files import OWN_FOLDER, Tree
from holdfast._values.os_errors import FULL
from holdfast.workspace import _index
from holdfast.workspace._index import Folder, Index
from holdfast.workspace._own_folder import INDEX, OwnFolder
from holdfast.workspace._rules import RuleBook
from holdfast.workspace._snapshot import Contents, FolderSnapshot
from holdfast.workspace._walk import Limits, Walk, folders_of

# The file of the index is written when reading again what it does not know would cost
# more than that: so many bytes, where each file counts a thousand more.
_WORTH_WRITING = 1 << 21


class Scanner:
    """Scans one folder again and again."""

    def __init__(self, path: str, book: RuleBook, limits: Limits) -> None:
        self._path = path
        self.book = book
        self._limits = limits
        self._index: Index | None = None
        self._tree = Tree()
        self._bytes = 0
        self._unwritten = 0

    def scan(self, top: int, own: OwnFolder, young: int) -> FolderSnapshot:
        """The files as they are now."""
        index = self._index or self._load(own)
        spool = None if own.at is None else f"{self._path}/{OWN_FOLDER}"
        contents = Contents(spool)
        walk = Walk(
            index,
            self.book,
            self._limits,
            contents,
            young,
            files=len(self._tree.entries),
            size=self._bytes,
        )
        self._index = None  # a walk that fails leaves it half changed
        walk.run(top)
        self._take(index, walk)
        self._keep(own, walk.read)
        return FolderSnapshot(self._path, self._tree, contents)

    def _load(self, own: OwnFolder) -> Index:
        stored = b""
        with contextlib.suppress(OSError):  # a cache: then all files are read
            stored = own.read(INDEX) or b""
        index = _index.decode(stored, self.book.key)
        index = index or Index(Folder(), book=self.book.key)
        self._tree = index.tree()
        self._bytes = sum(entry.size for entry in self._tree.entries.values())
        return index

    def _take(self, index: Index, walk: Walk) -> None:
        index.omitted = tuple(sorted(walk.omitted, key=lambda each: each.path))
        if walk.rules_changed or not index.rules:
            index.rules = self.book.in_force(_rule_files(index.top))
        is_same = not walk.changed and not walk.gone
        if not is_same:
            entries = dict(self._tree.entries)
            for path in walk.gone:
                entries.pop(path, None)
            entries.update(walk.changed)
            self._tree = Tree(entries, index.rules, index.omitted)
        elif (index.rules, index.omitted) != (self._tree.rules, self._tree.omitted):
            self._tree = Tree(self._tree.entries, index.rules, index.omitted)
        self._index, self._bytes = index, walk.size

    def _keep(self, own: OwnFolder, read: int) -> None:
        """Write the file of the index, if that is worth it."""
        self._unwritten += read
        if own.at is None or self._unwritten < _WORTH_WRITING or self._index is None:
            return
        try:
            own.write(INDEX, _index.encode(self._index), durable=False)
        except OSError as error:
            if error.errno not in FULL:
                raise
        self._unwritten = 0


def _rule_files(top: Folder) -> dict[str, tuple[str, ...]]:
    return {
        _text(place + name): lines
        for place, folder in folders_of(top)
        for name, lines in folder.rule_files.items()
    }


def _text(path: str) -> str:
    """A path that can be stored as text, also if it is not UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
