"""The changes of a restore: decided from three trees, before the folder is touched.

``present`` is the folder now, ``last`` the newest snapshot, ``target`` the one to go
back to. Only paths that ``last`` or ``target`` recorded are ever touched.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection

import msgspec

from holdfast._values.files import (
    FileEntry,
    Omitted,
    Tree,
    as_seen,
    differences,
    parents,
)
from holdfast.workspace._rules import RecordedRules, RuleBook, recorded_rules

# Folders that git and the like keep beside the files. They run what is in them, so a
# list alone does not write there. The last one is ".git" for Windows.
REPOSITORIES = frozenset(
    {b".git", b".hg", b".svn", b".jj", b".bzr", b".sl", b".pijul", b"_darcs", b"git~1"}
)
NOT_NAMED = "a repository, restored only if paths (--path) names it"
USUAL_FOLDER = stat.S_IFDIR | 0o755


class FileChange(msgspec.Struct, frozen=True):
    """One path of a restore: what it is now, and what it becomes."""

    path: bytes
    before: FileEntry | None
    after: FileEntry | None


class Plan(msgspec.Struct, frozen=True):
    """The changes in order of their paths.

    ``conflicts`` were changed since the last snapshot; ``left`` are paths that stay,
    because the target does not say what they were. ``strangers`` are files that no
    snapshot has; beside them the folder ``is_saved``, if it is as it was last.
    """

    changes: tuple[FileChange, ...]
    conflicts: tuple[bytes, ...]
    left: tuple[Omitted, ...]
    strangers: tuple[bytes, ...]
    is_saved: bool


def make_plan(
    present: Tree,
    last: Tree,
    target: Tree,
    paths: Collection[bytes] | None,
    rules: RuleBook,
) -> Plan:
    """The changes that make the files of ``target`` out of the present ones.

    A repository stays as it is, unless ``paths`` names it or ``rules`` take it in.
    """
    repositories: set[bytes] = set()
    changes: list[FileChange] = []
    left: list[Omitted] = []
    since, back = (differences(last.entries, t.entries) for t in (present, target))
    now, unknown = _Unknown(present), _Unknown(target)
    usual = _usual_folders(last, target, back[1])
    for path in sorted(set[bytes]().union(*since, *back)):
        before, after = present.entries.get(path), target.entries.get(path)
        if paths is not None and not is_below(path, paths):
            continue
        if before is None and path in back[1] and (reason := now.omits(path)):
            left.append(Omitted(path, reason))
        # A path that no snapshot has stays; one that only the last snapshot has goes.
        if before == after or (after is None and path not in back[1]):
            continue
        place = repository(path)
        if place is not None and not (
            _names(paths, path) or rules.takes_in(os.fsdecode(path))
        ):
            repositories.add(place)
            continue
        after = after or usual.get(path)
        if after is None and (reason := unknown.reason(path)):
            left.append(Omitted(path, reason))
        else:
            changes.append(FileChange(path, before, after))
    left += [Omitted(path, NOT_NAMED) for path in sorted(repositories)]
    conflicts = tuple(
        change.path
        for change in changes
        if change.before != last.entries.get(change.path)
    )
    known = (last.entries, target.entries)
    strangers = [p for p in since[0] if not any(p in each for each in known)]
    is_saved = len(strangers) == len(since[0]) and not since[1]
    return Plan(tuple(changes), conflicts, tuple(left), tuple(strangers), is_saved)


def repository(path: bytes) -> bytes | None:
    """The repository that a path is in, ``None`` if it is in none."""
    parts = path.split(b"/")
    for end, part in enumerate(parts, 1):
        if as_seen(part) in REPOSITORIES:
            return b"/".join(parts[:end])
    return None


def _names(paths: Collection[bytes] | None, path: bytes) -> bool:
    """True if the path is in one of ``paths`` that is inside of a repository."""
    return any(repository(each) and is_below(path, [each]) for each in paths or ())


def _usual_folders(
    last: Tree, target: Tree, dropped: set[bytes]
) -> dict[bytes, FileEntry]:
    """Folders of the target that got unusual permissions later."""
    listed = {path for path in dropped if last.entries[path].is_directory}
    if not listed:
        return {}
    there = {folder for path in target.entries for folder in parents(path)}
    return {
        path: FileEntry(path, USUAL_FOLDER, 0, last.entries[path].digest)
        for path in listed & there
    }


def is_below(path: bytes, places: Collection[bytes]) -> bool:
    """True if a path is one of the places, or in one that is a folder."""
    return any(path == each or path.startswith(each + b"/") for each in places)


class _Unknown:
    """The paths of which a tree does not say whether they were there."""

    def __init__(self, tree: Tree) -> None:
        self._omitted = {each.path: each.reason for each in tree.omitted}
        self._lines = tree.rules
        self._rules: RecordedRules | None = None

    def reason(self, path: bytes) -> str | None:
        """Why a path that is not in the tree may have been in the folder."""
        if (omitted := self.omits(path)) is not None:
            return omitted
        if self._rules is None:
            self._rules = recorded_rules(self._lines)
        return "ignored" if self._rules.ignores(os.fsdecode(path)) else None

    def omits(self, path: bytes) -> str | None:
        """Why a path was left out of the tree, by itself or with its folder."""
        places = (path, *parents(path)) if self._omitted else ()
        return next((self._omitted[p] for p in places if p in self._omitted), None)
