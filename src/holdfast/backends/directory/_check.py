"""Finding damage in a folder, and reading what is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import apsw
import msgspec

from holdfast._port import HeadId, Inspection, Place, Portion, Rescued
from holdfast._values.records import Checkpoint, Entry, Run, Segment, ThreadRecord
from holdfast.backends.directory import _catalog
from holdfast.backends.directory._catalog import FileProblem, IndexedFile
from holdfast.backends.directory._file_scan import scan_file
from holdfast.backends.directory._folder import Folder
from holdfast.backends.directory._index_rows import FamilyClash, LineLoader, drop_family
from holdfast.backends.directory._line_parts import whole_family
from holdfast.backends.directory._lines import LineEncoder, StoredLine, read_lines
from holdfast.backends.directory._open import prepare_index
from holdfast.backends.sqlite import MEMORY, connect, snapshot

ATTEMPTS = 20


class FolderInspection:
    """An inspection of the index that also reports what is wrong with the files."""

    def __init__(self, index: Inspection, problems: Sequence[FileProblem]) -> None:
        self._index = index
        self._problems = problems
        self.moment = index.moment

    async def families(
        self, numbers: Sequence[int], *, heads_only: bool = False
    ) -> Rescued:
        found = await self._index.families(numbers, heads_only=heads_only)
        return self._rescued(found)

    def _rescued(self, rescued: Rescued) -> Rescued:
        found = (f"{problem.name}: {problem.what}" for problem in self._problems)
        return msgspec.structs.replace(rescued, damage=(*rescued.damage, *found))

    async def threads(self, after: Place) -> Portion[ThreadRecord]:
        found = await self._index.threads(after)
        if after != Place():
            return found
        problems = (f"{problem.name}: {problem.what}" for problem in self._problems)
        return msgspec.structs.replace(found, damage=(*found.damage, *problems))

    async def checkpoints(self, after: Place) -> Portion[Checkpoint]:
        return await self._index.checkpoints(after)

    async def saves(self, after: Place) -> Portion[Checkpoint]:
        return await self._index.saves(after)

    async def heads(self, after: Place) -> Portion[HeadId]:
        return await self._index.heads(after)

    async def entries(self, after: Place) -> Portion[Entry]:
        return await self._index.entries(after)

    async def headed_by(self, lost: Sequence[int]) -> list[str]:
        return await self._index.headed_by(lost)

    async def checkpoint(self, family: int, id_: str) -> Checkpoint | None:
        return await self._index.checkpoint(family, id_)

    async def segments(
        self, wanted: Sequence[tuple[int, Run]]
    ) -> list[list[Segment | None]]:
        return await self._index.segments(wanted)

    async def count_checkpoints(self) -> int:
        return await self._index.count_checkpoints()

    async def count_saved(self, family: int, up_to: int) -> int:
        return await self._index.count_saved(family, up_to)

    async def count_segments(self, families: Sequence[int]) -> list[int]:
        return await self._index.count_segments(families)

    async def count_strays(self) -> int:
        return await self._index.count_strays()

    async def close(self) -> None:
        await self._index.close()


def check_files(db: apsw.Connection, folder: Folder) -> list[str]:
    """The problems of files that were sound when the index took them in."""
    scratch = connect(MEMORY, read_only=False, busy_timeout=0, vfs=None)
    try:
        prepare_index(scratch, MEMORY)
        names = [f.name for f in _catalog.all_files(db).values() if not f.problem]
        return [
            problem
            for name in sorted(names)
            for problem in _check_file(db, folder, name, scratch)
        ]
    finally:
        scratch.close()


def _check_file(
    db: apsw.Connection, folder: Folder, name: str, scratch: apsw.Connection
) -> list[str]:
    """Check a file against one state of the index, while processes may write."""
    found: list[str] = []
    for _ in range(ATTEMPTS):
        file = _catalog.all_files(db).get(name)
        with snapshot(db):
            if _catalog.all_files(db).get(name) != file:
                continue
            found = list(_problems(db, folder, file, scratch)) if file else []
        if not found or _catalog.all_files(db).get(name) == file:
            break
    return found


def _problems(
    db: apsw.Connection, folder: Folder, file: IndexedFile, scratch: apsw.Connection
) -> Iterator[str]:
    scan = scan_file(known_pieces(folder, file))
    for bad in scan.bads:
        yield f"{file.name}: at byte {bad.start} a line is bad: {bad.why}"
    if scan.end.end != file.taken or scan.end.tail != file.tail:
        yield f"{file.name}: it does not end as it was written"
    elif not scan.bads and not _says_the_same(db, folder, file, scratch):
        yield (
            f"{file.name}: the index says something else;"
            f" remove {folder.work} while no store is open to have it made again"
        )


def known_pieces(folder: Folder, file: IndexedFile) -> Iterator[bytes]:
    """The lines of a file that the index has taken in."""
    left = file.taken
    for piece in folder.pieces(file.name):
        if left <= 0:
            return
        yield piece
        left -= len(piece)


def _says_the_same(
    db: apsw.Connection, folder: Folder, file: IndexedFile, scratch: apsw.Connection
) -> bool:
    if file.family is None:
        return True
    drop_family(scratch, file.family)
    loader = LineLoader(scratch, file.family, file.taken)
    try:
        for line in read_lines(known_pieces(folder, file)):
            if isinstance(line, StoredLine):
                loader.take_in(line.content())
    except (FamilyClash, ValueError):
        return False
    one, other = (
        LineEncoder().encode(whole_family(source, file.family))
        for source in (db, scratch)
    )
    same = all(a == b for a, b in zip_longest(one, other))
    drop_family(scratch, file.family)
    return same
