"""One walk through a folder: what of it is not as the index has it.

A file whose times, size, inode and mode are those of the index is not opened. The walk
holds a descriptor of every folder on the way down and follows no symbolic links.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast._values.files import KEPT_MODE, OWN_FOLDER, FileEntry, Omitted, as_seen
from holdfast._values.os_errors import NO_ROOM, is_nothing
from holdfast._values.store_files import COMPANIONS, STORE_OF_FILES
from holdfast.workspace import _descriptors
from holdfast.workspace._index import Folder, Index, Stamp
from holdfast.workspace._open_files import OpenFiles, readable
from holdfast.workspace._read import (
    NOTHING,
    ReadFile,
    Replaced,
    Unstable,
    read_file,
    read_link,
    stamp_of,
)
from holdfast.workspace._rules import (
    RULE_FILES,
    RuleBook,
    Rules,
    rule_lines,
)
from holdfast.workspace._snapshot import Contents
from holdfast.workspace._stores import (
    A_STORE,
    is_companion,
    is_store_file,
    is_store_folder,
)

# Each level holds a descriptor and a frame.
DEEPEST = 200
# Begins the reason why a file is left out at which a look failed.
UNREADABLE = "unreadable"
# Folders with other permissions are files of the tree, so that these come back.
USUAL_FOLDER_MODES = frozenset({0o755, 0o775})
_KINDS = {
    stat.S_IFSOCK: "socket",
    stat.S_IFIFO: "pipe",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The largest part of a folder that is taken; the rest is listed as left out."""

    largest_file: int
    most_files: int
    most_bytes: int


@dataclass(slots=True)
class Walk:
    """A walk that brings an index up to date.

    ``young`` is a time of the file system's clock before the first file is read: a file
    that was changed then or later is read again by the next walk, because a further
    change could give it the same times.
    """

    index: Index
    book: RuleBook
    limits: Limits
    contents: Contents
    young: int
    files: int  # how many the tree has
    size: int  # of all of them
    changed: dict[bytes, FileEntry] = field(default_factory=dict[bytes, FileEntry])
    gone: set[bytes] = field(default_factory=set[bytes])
    omitted: list[Omitted] = field(default_factory=list[Omitted])
    read: int = 0  # bytes
    rules_changed: bool = False
    open_files: OpenFiles = field(default_factory=OpenFiles)
    device: int = 0

    def run(self, top: int) -> None:
        """Walk the whole folder."""
        self.device = os.fstat(top).st_dev
        self._folder(top, self.index.top, "", self.book.top)

    def _folder(self, at: int, folder: Folder, place: str, rules: Rules) -> None:
        with os.scandir(at) as found:
            listing = list(found)
        rest = _not_quiet(folder, listing)
        # Files with rules that were not there are not known.
        rules = self._rules(
            at, folder, place, rules, listing if folder.rule_files else rest
        )
        if folder.rules != rules.key:
            self._decide_again(folder, place, rules)
            rest = _not_quiet(folder, listing)
        _refuse_store(at, place, rest)
        quiet = len(listing) - len(rest)
        below = sum(item.name in folder.folders for item in rest)
        is_whole = quiet == len(folder.files) and below == len(folder.folders)
        if not is_whole or len(folder.ignored) > len(rest):
            self._drop_missing(folder, {item.name for item in listing})
        for item in rest:
            self._item(at, folder, item, place, rules)

    # --- rules ------------------------------------------------------------------------

    def _rules(
        self,
        at: int,
        folder: Folder,
        place: str,
        rules: Rules,
        listing: list[os.DirEntry[str]],
    ) -> Rules:
        """The rules for a folder; files with rules are read only if they changed."""
        here = {item.name: item for item in listing if item.name in RULE_FILES}
        found: dict[str, tuple[str, ...]] = {}
        for name in RULE_FILES:
            if name in here:
                found[name] = self._lines(at, folder, here[name])
        if found != folder.rule_files:
            folder.rule_files = found
            self.rules_changed = True
        lines = tuple(line for each in found.values() for line in each)
        return Rules(lines, place, rules) if lines else rules

    def _lines(
        self, at: int, folder: Folder, item: os.DirEntry[str]
    ) -> tuple[str, ...]:
        known, lines = folder.stamps.get(item.name), folder.rule_files.get(item.name)
        try:
            if known and lines is not None and _is_quiet(item, known):
                return lines
            if item.stat(follow_symlinks=False).st_size <= self.limits.largest_file:
                with readable(item.name, at) as file:
                    return rule_lines(b"".join(_descriptors.pieces(file)))
        except OSError as error:
            # Without its rules a folder could be saved with what they keep out.
            if not is_nothing(error):
                raise
        return ()

    def _decide_again(self, folder: Folder, place: str, rules: Rules) -> None:
        """Forget the files that are left out by rules which changed since the walk."""
        folder.rules = rules.key
        folder.ignored.clear()
        for name in list(folder.files):
            if self.book.ignores(place + name, rules):
                self._forget_file(folder, name)
        for name in list(folder.folders):
            if self.book.ignores(f"{place}{name}/", rules):
                self._forget_folder(folder, name)

    # --- what is no longer there ------------------------------------------------------

    def _drop_missing(self, folder: Folder, present: set[str]) -> None:
        for name in folder.files.keys() - present:
            self._forget_file(folder, name)
        for name in folder.folders.keys() - present:
            self._forget_folder(folder, name)
        for name in folder.ignored.keys() - present:
            del folder.ignored[name]

    def _forget_file(self, folder: Folder, name: str) -> None:
        folder.stamps.pop(name, None)
        if (entry := folder.files.pop(name, None)) is not None:
            self._remove(entry)

    def _forget_folder(self, folder: Folder, name: str) -> None:
        if (below := folder.folders.pop(name, None)) is not None:
            for entry in below.entries():
                self._remove(entry)

    def _remove(self, entry: FileEntry) -> None:
        self.gone.add(entry.path)
        self.changed.pop(entry.path, None)
        self.files -= 1
        self.size -= entry.size

    def _add(self, entry: FileEntry) -> None:
        self.changed[entry.path] = entry
        self.gone.discard(entry.path)
        self.files += 1
        self.size += entry.size

    # --- what may have changed --------------------------------------------------------

    def _item(
        self,
        at: int,
        folder: Folder,
        item: os.DirEntry[str],
        place: str,
        rules: Rules,
    ) -> None:
        """A file that may have changed, a folder, or something unknown."""
        name = item.name
        is_folder = item.is_dir(follow_symlinks=False)
        if name == OWN_FOLDER or folder.ignored.get(name) is is_folder:
            return
        if as_seen(os.fsencode(name)) == OWN_FOLDER.encode():
            self._omit(os.fsencode(place + name), "named as the folder of a workspace")
            return
        if not is_folder and name.endswith(COMPANIONS) and self._goes(at, item, place):
            self._forget(folder, name)
        elif is_folder and name in folder.folders:
            self._enter(at, folder, name, place, rules)
        elif not is_folder and name in folder.files:
            self._file(at, folder, item, place)
        elif self.book.ignores(f"{place}{name}/" if is_folder else place + name, rules):
            self._forget(folder, name)
            folder.ignored[name] = is_folder
        elif is_folder:
            self._forget(folder, name)
            self._enter(at, folder, name, place, rules)
        else:
            self._forget(folder, name)
            self._file(at, folder, item, place)

    def _goes(self, at: int, item: os.DirEntry[str], place: str) -> bool:
        """True if a file belongs to a store that is left out, or if that is unknown."""
        try:
            return is_companion(at, item.name)
        except OSError as error:
            self._omit(os.fsencode(place + item.name), _reason(error))
            return True

    def _forget(self, folder: Folder, name: str) -> None:
        """Something of another kind has the name now."""
        self._forget_file(folder, name)
        self._forget_folder(folder, name)
        folder.ignored.pop(name, None)

    def _enter(
        self, at: int, folder: Folder, name: str, place: str, rules: Rules
    ) -> None:
        path = os.fsencode(place + name)
        if path.count(b"/") >= DEEPEST:
            self._forget_folder(folder, name)
            self._omit(path, f"more than {DEEPEST} folders deep")
            return
        below = folder.folders.get(name)
        if below is None:
            below = folder.folders[name] = Folder()
        try:
            about = self._walked(at, below, name, place, rules)
        except (OSError, _Left) as error:
            self._forget_folder(folder, name)
            self._omit(path, _reason(error))
        else:
            self._list_folder(below, path, about.st_mode)

    def _walked(
        self, at: int, below: Folder, name: str, place: str, rules: Rules
    ) -> os.stat_result:
        inside = os.open(name, _descriptors.FOLDER, dir_fd=at)
        try:
            about = os.fstat(inside)
            if about.st_dev != self.device:
                _distrust(below)
            self._folder(inside, below, f"{place}{name}/", rules)
        finally:
            os.close(inside)
        return about

    def _list_folder(self, folder: Folder, path: bytes, mode: int) -> None:
        """Make an empty folder, or one with unusual permissions, a file of the tree."""
        is_empty = not folder.files and not folder.folders
        is_listed = is_empty or mode & 0o777 not in USUAL_FOLDER_MODES
        entry = FileEntry(path, mode & KEPT_MODE, 0, NOTHING) if is_listed else None
        if entry != folder.entry:
            if folder.entry is not None:
                self._remove(folder.entry)
            folder.entry = entry
            if entry is not None:
                self._add(entry)

    def _file(
        self, at: int, folder: Folder, item: os.DirEntry[str], place: str
    ) -> None:
        name, path = item.name, os.fsencode(place + item.name)
        before = folder.files.get(name)
        self._forget_file(folder, name)
        try:
            stamp, entry = self._read(at, folder, item, path)
        except (OSError, Replaced, Unstable, _Left) as error:
            self._omit(path, _reason(error))
            return
        if max(stamp[:2]) < self.young:
            folder.stamps[name] = stamp
        folder.files[name] = entry
        self._add(entry)
        if before == entry:
            del self.changed[path]

    def _read(
        self, at: int, folder: Folder, item: os.DirEntry[str], path: bytes
    ) -> ReadFile:
        about = item.stat(follow_symlinks=False)
        if is_store_file(at, item.name, about):
            for end in COMPANIONS:  # known, if they were there before the store
                self._forget_file(folder, item.name + end)
            raise _Left(A_STORE)
        self._check_limits(about)
        self.read += about.st_size + 1000
        if item.is_symlink():
            return read_link(at, item.name, path, self.contents)
        return read_file(at, item.name, path, self.contents, self.open_files)

    def _check_limits(self, about: os.stat_result) -> None:
        kind = _KINDS.get(stat.S_IFMT(about.st_mode))
        if kind is not None:
            raise _Left(kind)
        if about.st_size > self.limits.largest_file:
            raise _Left(f"larger than {self.limits.largest_file} bytes")
        if self.files >= self.limits.most_files:
            raise _Left(f"more than {self.limits.most_files} files")
        if self.size + about.st_size > self.limits.most_bytes:
            raise _Left(f"more than {self.limits.most_bytes} bytes in all")

    def _omit(self, path: bytes, reason: str) -> None:
        self.omitted.append(Omitted(path, reason))


class _Left(Exception):
    """A file or folder that is left out on purpose."""


def _reason(error: Exception) -> str:
    match error:
        case _Left():
            return str(error)
        case Unstable():
            return "changed while it was read"
        case Replaced() | FileNotFoundError() | NotADirectoryError():
            return "vanished"
        case OSError() if error.errno in NO_ROOM:
            raise error
        case PermissionError():
            return UNREADABLE
        case OSError():
            return f"{UNREADABLE}: {error.strerror}"
        case _:
            raise error


def _not_quiet(
    folder: Folder, listing: list[os.DirEntry[str]]
) -> list[os.DirEntry[str]]:
    """The items of a folder that are not as the index has them.

    All that a quiet scan does for each file is here.
    """
    rest: list[os.DirEntry[str]] = []
    find = folder.stamps.get
    for item in listing:
        known = find(item.name)
        if known is not None:
            try:
                now = item.stat(follow_symlinks=False)
            except OSError:
                rest.append(item)
                continue
            # As `stamp_of`, which would cost a tenth of the whole walk here.
            if known == (
                now.st_mtime_ns,
                now.st_ctime_ns,
                now.st_size,
                now.st_ino,
                now.st_mode,
            ):
                continue
        rest.append(item)
    return rest


def _is_quiet(item: os.DirEntry[str], known: Stamp) -> bool:
    return stamp_of(item.stat(follow_symlinks=False)) == known


def _refuse_store(at: int, place: str, unknown: list[os.DirEntry[str]]) -> None:
    """Leave a folder out that is a store; its files are never known to the index."""
    has_name = any(item.name == STORE_OF_FILES for item in unknown)
    # The top was asked when the workspace was opened.
    if place and has_name and is_store_folder(at):
        raise _Left(A_STORE)


def _distrust(folder: Folder) -> None:
    """Read all files again: on another file system times are of another clock."""
    folder.stamps.clear()


def folders_of(folder: Folder, place: str = "") -> Iterator[tuple[str, Folder]]:
    """A folder and all below it, with their paths."""
    yield place, folder
    for name, below in folder.folders.items():
        yield from folders_of(below, f"{place}{name}/")
