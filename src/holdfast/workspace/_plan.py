"""What a restore does to a folder: decided from three trees, before it is touched.

``present`` is the folder now, ``last`` the newest snapshot, ``target`` the one to go
back to. Only paths that ``last`` or ``target`` recorded are ever touched.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator

import msgspec

from holdfast._values.files import FileEntry, Omitted, Tree, differences
from holdfast.workspace._rules import RecordedRules, recorded_rules

USUAL_FOLDER = stat.S_IFDIR | 0o755


class FileChange(msgspec.Struct, frozen=True):
    """One path of a restore: what it is now, and what it becomes."""

    path: bytes
    before: FileEntry | None
    after: FileEntry | None


class Plan(msgspec.Struct, frozen=True):
    """The changes in order of their paths.

    ``conflicts`` were changed since the last snapshot; ``left`` are paths that stay,
    because the target does not say what they were.
    """

    changes: tuple[FileChange, ...]
    conflicts: tuple[bytes, ...]
    left: tuple[Omitted, ...]


def make_plan(
    present: Tree, last: Tree, target: Tree, paths: Collection[bytes] | None
) -> Plan:
    """What makes the files of ``target`` out of those that are there."""
    changes: list[FileChange] = []
    left: list[Omitted] = []
    dropped = differences(last.entries, target.entries)[1]
    unknown, usual = _Unknown(target), _usual_folders(last, target, dropped)
    other = differences(present.entries, target.entries)[0]
    for path in sorted(other | (dropped & present.entries.keys())):
        if paths is not None and not is_below(path, paths):
            continue
        after = target.entries.get(path) or usual.get(path)
        if after is None and (reason := unknown.reason(path)):
            left.append(Omitted(path, reason))
        else:
            changes.append(FileChange(path, present.entries.get(path), after))
    conflicts = tuple(
        change.path
        for change in changes
        if change.before != last.entries.get(change.path)
    )
    return Plan(tuple(changes), conflicts, tuple(left))


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
    """Whether a path is one of some places, or in one that is a folder."""
    return any(path == each or path.startswith(each + b"/") for each in places)


class _Unknown:
    """The paths of which a tree does not say whether they were there."""

    def __init__(self, tree: Tree) -> None:
        self._omitted = {each.path: each.reason for each in tree.omitted}
        self._lines = tree.rules
        self._rules: RecordedRules | None = None

    def reason(self, path: bytes) -> str | None:
        """Why a path that is not in the tree may have been in the folder."""
        for place in (path, *parents(path)):
            if place in self._omitted:
                return self._omitted[place]
        if self._rules is None:
            self._rules = recorded_rules(self._lines)
        return "ignored" if self._rules.ignores(os.fsdecode(path)) else None


def parents(path: bytes) -> Iterator[bytes]:
    """The folders that a path is in, the nearest first."""
    while (cut := path.rfind(b"/")) > 0:
        path = path[:cut]
        yield path
