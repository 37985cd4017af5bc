"""The list of a checkpoint's files as segments: a few levels, each a part of the list.

A level is what changed: files that were set or removed. The newest level, the *top*,
names the levels below it that are still in force, with their digests, and those name
the digests of the files: so the digest of the top stands for all of it. A new level
takes in those below that are not twice as large. So there are few levels, and each file
is written again a few times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise

import msgspec

from holdfast._values.files import FileEntry, Omitted, Tree
from holdfast._values.records import Run, Segment
from holdfast._values.rope import chain_of
from holdfast.errors import Corrupt

# Begins every level. Content may begin with it too: it only says what may be a level.
MAGIC = b"\xf1HF1"


class StoredFile(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A file with the segments that hold its content.

    ``runs`` are pairs of numbers, the first and the count. ``chain`` is the running
    digest over several segments; a single one has the digest of the file.
    """

    path: bytes
    mode: int
    size: int
    digest: bytes
    runs: tuple[int, ...] = ()
    chain: bytes = b""

    @classmethod
    def of(cls, entry: FileEntry, numbers: Sequence[int], chain: bytes) -> StoredFile:
        """A file whose content is in these segments."""
        pairs = tuple(part for run in runs_of(numbers) for part in run)
        fields = (entry.path, entry.mode, entry.size, entry.digest)
        return cls(*fields, pairs, chain if len(numbers) > 1 else b"")

    def at(self, entry: FileEntry) -> StoredFile:
        """Another file with the same content."""
        fields = (entry.path, entry.mode, entry.size, entry.digest)
        return StoredFile(*fields, self.runs, self.chain)

    @property
    def entry(self) -> FileEntry:
        """The file without its segments."""
        return FileEntry(self.path, self.mode, self.size, self.digest)

    @property
    def numbers(self) -> list[int]:
        """The numbers of its segments, in order."""
        pairs = zip(self.runs[::2], self.runs[1::2], strict=True)
        return [n for first, count in pairs for n in range(first, first + count)]

    def has(self, hashes: Sequence[bytes]) -> bool:
        """Whether segments with these hashes are its content."""
        if len(hashes) == 1:
            return hashes[0] == self.digest
        return chain_of(hashes) == self.chain if hashes else not self.size


class Below(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A level that a top names: where it is, how large, and its digest."""

    number: int
    size: int
    digest: bytes


class About(msgspec.Struct, frozen=True, array_like=True):
    """What a tree has beside its files."""

    rules: tuple[str, ...] = ()
    omitted: tuple[tuple[bytes, str], ...] = ()

    @classmethod
    def of(cls, tree: Tree) -> About:
        """That of a tree."""
        omitted = tuple((each.path, each.reason) for each in tree.omitted)
        return cls(tree.rules, omitted)


class Level(msgspec.Struct, frozen=True, array_like=True):
    """A part of the list: what was set and removed. A top also names the others."""

    files: tuple[StoredFile, ...] = ()
    removed: tuple[bytes, ...] = ()
    about: About | None = None
    below: tuple[Below, ...] = ()

    def encoded(self) -> bytes:
        """The level as the bytes of a segment."""
        return MAGIC + msgspec.msgpack.encode(self)


_DECODER = msgspec.msgpack.Decoder(Level)


def decode_level(data: bytes) -> Level:
    """The level that a segment holds; `Corrupt` if it holds none."""
    try:
        if data.startswith(MAGIC):
            return _DECODER.decode(data[len(MAGIC) :])
    except msgspec.MsgspecError:
        pass
    raise Corrupt("a list of files", "it cannot be read")


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

    ``entries`` are the same files without where they are stored, if they are known.
    """

    files: dict[bytes, StoredFile] = {}
    about: About = About()
    parts: tuple[Part, ...] = ()
    entries: dict[bytes, FileEntry] = {}

    @property
    def tree(self) -> Tree:
        """The files and what was left out, without where they are stored."""
        if len(self.entries) == len(self.files):
            entries = dict(self.entries)
        else:
            entries = {
                path: FileEntry(path, stored.mode, stored.size, stored.digest)
                for path, stored in self.files.items()
            }
        omitted = tuple(Omitted(*each) for each in self.about.omitted)
        return Tree(entries, self.about.rules, omitted)

    @property
    def levels(self) -> dict[bytes, Level]:
        """Its levels by their digests."""
        return {part.at.digest: part.level for part in self.parts}

    @property
    def numbers(self) -> set[int]:
        """The numbers of all segments that it needs."""
        found = {part.at.number for part in self.parts}
        for stored in self.files.values():
            runs = stored.runs
            if len(runs) == 2 and runs[1] == 1:  # noqa: PLR2004 - most files: one run
                found.add(runs[0])
            else:
                found.update(stored.numbers)
        return found

    @property
    def size(self) -> int:
        """The bytes of the levels and of the files, each content once."""
        contents = {stored.digest: stored.size for stored in self.files.values()}
        return sum(contents.values()) + sum(part.at.size for part in self.parts)


def fold(levels: Iterable[tuple[Below, Level]]) -> Listing:
    """The list that levels make, from the oldest to the top."""
    files: dict[bytes, StoredFile] = {}
    about, parts = About(), list[Part]()
    for at, level in levels:
        for path in level.removed:
            files.pop(path, None)
        files.update({stored.path: stored for stored in level.files})
        about = level.about or about
        parts.append(Part(at, level))
    return Listing(files, about, tuple(parts))


def extended(
    old: Listing, changes: Mapping[bytes, StoredFile | None], tree: Tree, number: int
) -> tuple[Listing, Segment]:
    """A list with the files of a tree, and the new top that it needs as a segment.

    ``changes`` are the files in which the two differ, ``None`` for one that is gone.
    """
    about = About.of(tree)
    files, changed = dict(old.files), set(changes)
    for path, stored in changes.items():
        if stored is None:
            del files[path]
        else:
            files[path] = stored
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
    listing = Listing(files, about, parts, dict(tree.entries))
    return listing, Segment(number, data)


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


def runs_of(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers in their order, as the first and the count of each run."""
    found: list[tuple[int, int]] = []
    first = following = -1
    for number in numbers:
        if number != following:
            if following >= 0:
                found.append((first, following - first))
            first = number
        following = number + 1
    if following >= 0:
        found.append((first, following - first))
    return found


def covering(needed: Iterable[int], present: Sequence[Run], most: int) -> list[Run]:
    """Few runs that hold the needed numbers, all of them present.

    Between the runs are the largest holes; smaller ones stay, because a run would cost
    more in each checkpoint than what they hold costs once.
    """
    runs: list[Run] = []
    for first, count in runs_of(sorted(needed)):
        runs.append(Run(first, first + count - 1))
    holes = [
        (_gap(one, other), place)
        for place, (one, other) in enumerate(pairwise(runs), 1)
    ]
    is_open = {
        place
        for (size, place) in holes
        if not _holds(present, runs[place - 1].last + 1, size)
    }
    free = sorted(((s, p) for s, p in holes if p not in is_open), reverse=True)
    is_open |= {place for _, place in free[: max(0, most - 1 - len(is_open))]}
    joined: list[Run] = []
    for place, run in enumerate(runs):
        if place == 0 or place in is_open:
            joined.append(run)
        else:
            joined[-1] = Run(joined[-1].first, run.last)
    return joined


def _gap(one: Run, other: Run) -> int:
    return other.first - one.last - 1


def _holds(runs: Sequence[Run], first: int, count: int) -> bool:
    """Whether a run of some has these numbers."""
    return any(run.first <= first and first + count - 1 <= run.last for run in runs)
