"""The list of a checkpoint's files as segments: a few levels, each a part of the list.

A level is a change: files that were set or removed. The newest level, the *top*, names
the levels below it that are still in force, with their digests, and those name the
digests of the files: so the digest of the top stands for all of it. A new level takes
in those below that are not twice as large. So there are few levels, and a file is
rewritten only a few times.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from operator import attrgetter
from typing import TypeVar

import msgspec

from holdfast._values.files import (
    FileEntry,
    Omitted,
    Tree,
    inside_of_file,
    parents,
    wrong_path,
)
from holdfast._values.records import Run, Segment
from holdfast._values.segment_use import SegmentUse, joined
from holdfast._values.stored_file import StoredFile, wrong_runs
from holdfast.errors import Corrupt

T = TypeVar("T")

# Begins every level. The content of a file may begin with it too: a match means only
# that a segment may be a level.
MAGIC = b"\xf1HF1"


class Below(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A level that a top names: where it is, how large, and its digest."""

    number: int
    size: int
    digest: bytes


class About(msgspec.Struct, frozen=True, array_like=True):
    """The rules of a tree, and the paths that it left out."""

    rules: tuple[str, ...] = ()
    omitted: tuple[tuple[bytes, str], ...] = ()

    @classmethod
    def of(cls, tree: Tree) -> About:
        omitted = tuple((each.path, each.reason) for each in tree.omitted)
        return cls(tree.rules, omitted)

    def tree(self, entries: dict[bytes, FileEntry]) -> Tree:
        """The tree with these files."""
        return Tree(entries, self.rules, tuple(Omitted(*each) for each in self.omitted))


class Level(msgspec.Struct, frozen=True, array_like=True):
    """A part of the list: what was set and removed, each in order of the paths.

    A top also names the others.
    """

    files: tuple[StoredFile, ...] = ()
    removed: tuple[bytes, ...] = ()
    about: About | None = None
    below: tuple[Below, ...] = ()

    def encoded(self) -> bytes:
        """The level as the bytes of a segment."""
        return MAGIC + msgspec.msgpack.encode(self)


_DECODER = msgspec.msgpack.Decoder(Level)
# More levels do not occur: a level takes in those that are not twice as large.
MOST_LEVELS = 64


def decode_level(data: bytes) -> Level:
    """The level that a segment holds; `Corrupt` if it holds none, or a wrong one."""
    try:
        level = _DECODER.decode(data[len(MAGIC) :]) if data.startswith(MAGIC) else None
    except (ValueError, RecursionError):
        level = None
    if level is None:
        raise Corrupt("a list of files", "it cannot be read")
    if (wrong := wrong_level(level)) is not None:
        raise Corrupt("a list of files", wrong)
    return level


def wrong_level(level: Level) -> str | None:
    """The problem of a level, ``None`` if it is valid.

    A store or an archive from elsewhere can have any bytes as a list.
    """
    files = [stored.path for stored in level.files]
    for paths in (files, level.removed):
        if (wrong := wrong_path(paths)) is not None:
            return wrong
        if list(paths) != sorted(set(paths)):
            return "its paths are not in order, or some are there twice"
    if not set(files).isdisjoint(level.removed):
        return "it sets and removes a path"
    numbers = {each.number for each in level.below}
    if len(numbers) != len(level.below) or len(numbers) > MOST_LEVELS:
        return "it names a level twice, or too many"
    return wrong_runs(level.files)


class Part(msgspec.Struct, frozen=True):
    """A level of a list in memory, and where it is stored."""

    at: Below
    level: Level

    @property
    def paths(self) -> set[bytes]:
        """The paths that it decides."""
        return {*self.level.removed, *(stored.path for stored in self.level.files)}


class Listing(msgspec.Struct, frozen=True):
    """The list of the files of a checkpoint, with its levels from the oldest.

    ``entries`` are the same files without where they are stored, and ``use`` the
    segments that they need, if these are known.
    """

    files: dict[bytes, StoredFile] = {}
    about: About = About()
    parts: tuple[Part, ...] = ()
    entries: dict[bytes, FileEntry] = {}
    use: SegmentUse | None = None

    @property
    def tree(self) -> Tree:
        if self.has_entries:
            return self.about.tree(dict(self.entries))
        entries = {
            path: FileEntry(path, stored.mode, stored.size, stored.digest)
            for path, stored in self.files.items()
        }
        return self.about.tree(entries)

    @property
    def has_entries(self) -> bool:
        """True if ``entries`` were made, which happens only when they are needed."""
        return len(self.entries) == len(self.files)

    @property
    def known_use(self) -> SegmentUse:
        """The segments that its files need, found out if that is not known."""
        return self.use or SegmentUse.of(self.files.values())

    @property
    def runs(self) -> tuple[Run, ...]:
        """All segments that it needs, with those of its levels."""
        numbers = (part.at.number for part in self.parts)
        return joined([*self.known_use.runs, *(Run(n, n) for n in numbers)])

    @property
    def size(self) -> int:
        """The bytes of the levels and of the files, each content once."""
        return self.known_use.size + sum(part.at.size for part in self.parts)


def fold(parts: Sequence[Part]) -> Listing:
    """The list that levels make, from the oldest to the top."""
    files: dict[bytes, StoredFile] = {}
    for part in parts:
        for path in part.level.removed:
            files.pop(path, None)
        files.update({stored.path: stored for stored in part.level.files})
    _refuse_inside(files, files)
    return Listing(files, _about(parts), tuple(parts))


def _refuse_inside(
    files: Mapping[bytes, StoredFile | FileEntry], new: Collection[bytes]
) -> None:
    """Refuse a list in which a file or a link is the folder of another file."""
    place = inside_of_file(files, new)
    if place is not None:
        raise _has_files(place)


def refuse_inside_levels(parts: Sequence[Part]) -> None:
    """Check as for a whole list; all levels but the top are known to be valid."""
    for new in parts[-1].level.files:
        for place in parents(new.path):
            found = find_in(parts, place)
            if found is not None and not stat.S_ISDIR(found.mode):
                raise _has_files(place)
        if stat.S_ISDIR(new.mode):
            continue
        start = new.path + b"/"
        for part in parts:
            files = part.level.files
            at = bisect_left(files, start, key=_path)
            while at < len(files) and files[at].path.startswith(start):
                if find_in(parts, files[at].path) is not None:
                    raise _has_files(new.path)
                at += 1


def _has_files(path: bytes) -> Corrupt:
    name = os.fsdecode(path)
    return Corrupt("a list of files", f"{name!r} is a file, and has files in it")


def _about(parts: Sequence[Part]) -> About:
    found = (part.level.about for part in reversed(parts))
    return next(filter(None, found), About())


# --- a list out of a similar one ------------------------------------------------------

# If fewer than one in so many files differ, changing a similar list is quicker than
# folding the levels.
FEW = 8
_path = attrgetter("path")


def fold_near(parts: Sequence[Part], near: Listing) -> Listing:
    """Like `fold`, out of a list that shares the oldest levels.

    Shared levels are not read again, and equal files are the same objects.
    """
    found = _other_files(parts, near)
    if found is None:
        return fold(parts)
    files, about = replaced(near.files, found), _about(parts)
    _refuse_inside(files, [path for path, each in found.items() if each])
    entries = replaced(near.entries, _entries(found)) if near.has_entries else {}
    return Listing(files, about, tuple(parts), entries)


def tree_near(parts: Sequence[Part], near: Listing) -> Tree:
    """The tree of such a list, without making the list."""
    found = _other_files(parts, near) if near.has_entries else None
    if found is None:
        return fold(parts).tree
    entries = replaced(near.entries, _entries(found))
    _refuse_inside(entries, [path for path, each in found.items() if each])
    return _about(parts).tree(entries)


def _entries(
    files: Mapping[bytes, StoredFile | None],
) -> dict[bytes, FileEntry | None]:
    return {path: each.entry if each else None for path, each in files.items()}


def _other_files(
    parts: Sequence[Part], near: Listing
) -> dict[bytes, StoredFile | None] | None:
    """The files that differ from another list, ``None`` if there are too many."""
    shared = _shared(parts, near.parts)
    other = (*parts[shared:], *near.parts[shared:])
    if not shared or FEW * sum(map(_count, other)) > len(near.files):
        return None
    paths = sorted({path for part in other for path in part.paths})
    found = {path: find_in(parts, path) for path in paths}
    return {p: each for p, each in found.items() if each is not near.files.get(p)}


def _shared(one: Sequence[Part], other: Sequence[Part]) -> int:
    """The number of the oldest levels that are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    differ = (place for place, (a, b) in pairs if a.at != b.at)
    return next(differ, min(len(one), len(other)))


def _count(part: Part) -> int:
    return len(part.level.files) + len(part.level.removed)


def find_in(parts: Sequence[Part], path: bytes) -> StoredFile | None:
    """The file at a path, from the newest level that sets or removes it."""
    for part in reversed(parts):
        files, removed = part.level.files, part.level.removed
        place = bisect_left(files, path, key=_path)
        if place < len(files) and files[place].path == path:
            return files[place]
        place = bisect_left(removed, path)
        if place < len(removed) and removed[place] == path:
            return None
    return None


def replaced(
    old: Mapping[bytes, T], changes: Mapping[bytes, T | None]
) -> dict[bytes, T]:
    """A copy with some values set, and those removed that are ``None``.

    The other values keep their places: lists in the same order are quicker to compare.
    """
    found = dict(old)
    for path, value in changes.items():
        if value is None:
            found.pop(path, None)
        else:
            found[path] = value
    return found


# --- the next list --------------------------------------------------------------------


def extended(
    old: Listing, changes: Mapping[bytes, StoredFile | None], tree: Tree, number: int
) -> tuple[Listing, Segment]:
    """A list with the files of a tree, and the new top that it needs as a segment.

    ``changes`` are the files in which the two differ, ``None`` for one that is gone.
    """
    about = About.of(tree)
    files, changed = replaced(old.files, changes), set(changes)
    is_about = about != old.about
    kept = list(old.parts)
    while True:
        top = _level(files, changed, about if is_about else None, kept)
        data = top.encoded()
        if not kept or kept[-1].at.size > 2 * len(data):
            break
        merged = kept.pop()
        changed |= merged.paths
        is_about |= merged.level.about is not None
    at = Below(number, len(data), sha256(data).digest())
    parts = (*kept, Part(at, top))
    use = _next_use(old, changes, files)
    listing = Listing(files, about, parts, dict(tree.entries), use)
    return listing, Segment(number, data)


def _next_use(
    old: Listing,
    changes: Mapping[bytes, StoredFile | None],
    files: Mapping[bytes, StoredFile],
) -> SegmentUse:
    if old.use is None or FEW * len(changes) > len(files):
        return SegmentUse.of(files.values())
    gone = [old.files[path] for path in changes if path in old.files]
    come = [stored for stored in changes.values() if stored is not None]
    return old.use.changed(gone, come)


def _level(
    files: Mapping[bytes, StoredFile],
    changed: Iterable[bytes],
    about: About | None,
    kept: Sequence[Part],
) -> Level:
    ordered = sorted(changed)
    return Level(
        files=tuple(files[path] for path in ordered if path in files),
        # Below the oldest level there is nothing to remove.
        removed=tuple(p for p in ordered if p not in files) if kept else (),
        about=about,
        below=tuple(part.at for part in kept),
    )
