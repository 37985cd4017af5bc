"""Bringing the index up to date with the files, whatever happened to them.

Lines that a crashed process had synced are taken in. The end that it was still writing
is cut off. A file that another program has replaced is taken in again as a whole. A
damaged file is left as it is, and so are its rows in the index; other files still work.
"""

from __future__ import annotations

import contextlib
import errno
import secrets
import warnings
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

import apsw

from holdfast._values.os_errors import NO_ROOM
from holdfast.backends.directory import _catalog
from holdfast.backends.directory._catalog import FolderState, IndexedFile
from holdfast.backends.directory._file_scan import (
    FileScan,
    Position,
    on_one_branch,
    scan_file,
    unreadable,
)
from holdfast.backends.directory._files import FileStamp
from holdfast.backends.directory._folder import Folder
from holdfast.backends.directory._index_rows import FamilyClash, LineLoader, drop_family
from holdfast.backends.directory._lines import StoredLine, read_lines
from holdfast.backends.directory._names import STORE, family_of
from holdfast.backends.sqlite import reset_search, transaction

# Which families have to be up to date; ``None`` for all.
Families = frozenset[int] | None
NEVER = -1
# What decoding a line raises, or SQLite for numbers that are too large.
BAD_CONTENT = (ValueError, RecursionError, OverflowError)
LINKED = "it is a symbolic link; put the file itself in its place"


class Differences(NamedTuple):
    """Files whose stamps are not those that the index remembers."""

    changed: dict[str, FileStamp]
    gone: list[IndexedFile]
    changed_at: int
    is_folder_known: bool

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone) or not self.is_folder_known


def compare(db: apsw.Connection, folder: Folder, families: Families) -> Differences:
    """The differences between some families' files and the index.

    If the folder has changed since, all files are compared: a file may be new.
    """
    # Ask the folder before its files: a change in between is then found the next time.
    now = folder.changed_at()
    is_known = now == _catalog.folder_state(db).changed_at
    if families is None or not is_known:
        return _compare_all(db, folder, now, is_known=is_known)
    changed: dict[str, FileStamp] = {}
    gone: list[IndexedFile] = []
    for family in families:
        file = _catalog.file_of(db, family)
        if file is not None:
            stamp = folder.stamp(file.name)
            if stamp is None:
                gone.append(file)
            elif stamp != file.stamp:
                changed[file.name] = stamp
    return Differences(changed, gone, now, is_known)


def _compare_all(
    db: apsw.Connection, folder: Folder, now: int, *, is_known: bool
) -> Differences:
    known, found = _catalog.all_files(db), folder.listing()
    changed = {
        name: stamp
        for name, stamp in found.items()
        if name not in known or known[name].stamp != stamp
    }
    gone = [file for name, file in known.items() if name not in found]
    return Differences(changed, gone, now, is_known)


class IndexUpdate:
    """One update of the index from the files, in one transaction.

    Without ``cutting`` nothing is written to any file: a torn end is skipped.
    A ``fresh`` index has taken in none of the files yet.
    """

    def __init__(
        self,
        db: apsw.Connection,
        folder: Folder,
        *,
        cutting: bool = True,
        fresh: bool = False,
    ) -> None:
        self._db = db
        self._folder = folder
        self._cutting = cutting
        self._fresh = fresh
        self._replaced = False
        self._notices: list[str] = []

    def run(self, found: Differences) -> None:
        """Take in the differences."""
        with transaction(self._db):
            known = _catalog.all_files(self._db)
            scanned = [
                self._scan(name, stamp, known.get(name))
                for name, stamp in self._suspects(found, known)
            ]
            for gone in found.gone:
                self._drop(gone)
            for file in scanned:
                if file.known is not None and file.is_replaced:
                    self._drop(file.known)
            for file in scanned:
                self._take_in(file)
            self._remember(found)
            # The numbers of changes in files that others wrote can be any.
            reset_search(self._db)
        for notice in self._notices:
            warnings.warn(notice, RuntimeWarning, stacklevel=2)

    def _suspects(
        self, found: Differences, known: dict[str, IndexedFile]
    ) -> list[tuple[str, FileStamp]]:
        """Files to scan: those that differ, and bad ones, whose problem may be gone."""
        gone = {file.name for file in found.gone}
        bad = {f.name: f.stamp for f in known.values() if f.problem} | found.changed
        # Known files come first: if two files hold one family, the known one keeps it.
        order = sorted(bad, key=lambda name: (name not in known, name))
        return [(name, bad[name]) for name in order if name not in gone]

    def _remember(self, found: Differences) -> None:
        # A new index starts at a random epoch: processes may remember the old index's.
        before = secrets.randbits(48) if self._fresh else self._epoch()
        state = FolderState(changed_at=found.changed_at, epoch=before + self._replaced)
        _catalog.set_folder(self._db, state)

    def _epoch(self) -> int:
        return _catalog.folder_state(self._db).epoch

    def _drop(self, file: IndexedFile) -> None:
        if file.family is not None:
            drop_family(self._db, file.family)
            self._replaced = True
        _catalog.forget_file(self._db, file.name)

    # --- one file ---------------------------------------------------------------------

    def _scan(
        self, name: str, stamp: FileStamp, known: IndexedFile | None
    ) -> ScannedFile:
        """The lines of a file; a torn end has been cut off."""
        known_end = Position()
        if known is not None and not known.problem:
            known_end = Position(known.taken, known.tail)
        try:
            found = scan_file(self._folder.pieces(name), known_end)
        except OSError as error:
            if error.errno in NO_ROOM:  # it says nothing about the file
                raise
            # With a stamp that no file can have, it is tried again the next time.
            is_link = error.errno == errno.ELOOP
            why = LINKED if is_link else f"it cannot be read: {error.strerror}"
            never = stamp._replace(modified=NEVER)
            return ScannedFile(name, never, known, known_end, unreadable(why))
        # All that was acknowledged is in the index, so the rest may be a torn end.
        is_alone = self._fresh and found.is_short and found.solid.end > 0
        is_expected = known_end.end > 0 or is_alone
        if not found.is_whole and found.is_torn and is_expected:
            stamp = self._cut(name, found.solid, stamp)
            found = found._replace(end=found.solid, bads=(), is_open=False)
        if found.is_open and found.is_whole and self._cutting:
            stamp = self._end_line(name, stamp)
        return ScannedFile(name, stamp, known, known_end, found)

    def _cut(self, name: str, at: Position, stamp: FileStamp) -> FileStamp:
        if not self._cutting:
            return stamp
        files, path = self._folder.files, self._folder.file(name)
        kept = self._folder.work_file(f"{name}.{at.end}.{stamp.modified}.torn")
        files.write(kept, 0, files.read(path, at.end))
        files.sync(kept)
        files.truncate(path, at.end)
        files.sync(path)
        self._notices.append(
            f"{path} ended in {stamp.size - at.end} bytes of a save that was never"
            f" finished; they were cut off and are kept in {kept}"
        )
        return self._folder.stamp(name) or stamp

    def _end_line(self, name: str, stamp: FileStamp) -> FileStamp:
        self._folder.files.write(self._folder.file(name), stamp.size, b"\n")
        self._folder.files.sync(self._folder.file(name))
        return self._folder.stamp(name) or stamp

    def _take_in(self, file: ScannedFile) -> None:
        problem = None if file.scan.is_whole else file.scan.damage
        family = file.family()
        if family is not None and (problem is None or file.is_new):
            problem = self._load(file, family) or problem
        self._note(file, family, problem)

    def _load(self, file: ScannedFile, family: int) -> str | None:
        """Load the lines into the index, all or none; what is wrong if none."""
        start = file.known_end.end if file.scan.is_known else 0
        take = self._take_all if file.scan.is_whole else self._take_some
        try:
            with _savepoint(self._db):
                self._claim(file.name, family)
                loader = LineLoader(self._db, family, file.stamp.size)
                take(loader, self._lines(file, start))
        except FamilyClash as error:
            return f"it was written apart from the other files: {error}"
        except BAD_CONTENT as error:
            return f"a line does not say what lines of this format say: {error}"
        except OSError as error:
            return f"it cannot be read: {error.strerror}"
        return None

    def _take_all(self, loader: LineLoader, lines: Iterable[StoredLine]) -> None:
        for line in lines:
            loader.take_in(line.content())

    def _take_some(self, loader: LineLoader, lines: Iterable[StoredLine]) -> None:
        """Take in what can be salvaged of a damaged file: the lines that still fit."""
        for line in on_one_branch(lines):
            with contextlib.suppress(FamilyClash, *BAD_CONTENT), _savepoint(self._db):
                loader.take_in(line.content())

    def _claim(self, name: str, family: int) -> None:
        other = _catalog.file_of(self._db, family)
        if other is not None and other.name != name:
            raise FamilyClash(f"family {family} is in {other.name}")
        if (family == 0) != (name == STORE):
            raise FamilyClash(f"what belongs to no family has to be in {STORE}")

    def _lines(self, file: ScannedFile, start: int) -> Iterator[StoredLine]:
        pieces = self._folder.pieces(file.name, start)
        for line in read_lines(pieces, start):
            if line.start >= file.scan.end.end:
                return
            if isinstance(line, StoredLine):
                yield line

    def _note(self, file: ScannedFile, family: int | None, problem: str | None) -> None:
        known, end = file.known, file.scan.end
        other = None if family is None else _catalog.file_of(self._db, family)
        if other is not None and other.name != file.name:
            family = None
        # If bytes changed but the size did not, no line is new, and no thread's name.
        is_certain = problem is None or (
            family is not None
            and known is not None
            and known.is_certain
            and known.stamp.size == file.stamp.size
        )
        indexed = IndexedFile(
            name=file.name,
            family=family,
            stamp=file.stamp,
            taken=end.end,
            tail=end.tail,
            problem=problem,
            is_certain=is_certain,
        )
        _catalog.set_file(self._db, indexed)


@contextlib.contextmanager
def _savepoint(db: apsw.Connection) -> Generator[None]:
    """All changes of a block, or none.

    Not apsw's own: after an error of the disk SQLite may have rolled back everything,
    and then apsw would report that it cannot roll back.
    """
    db.execute("savepoint file")
    try:
        yield
    except BaseException:
        if db.in_transaction:
            db.execute("rollback to file; release file")
        raise
    db.execute("release file")


class ScannedFile(NamedTuple):
    """A file: its stamp, what the index knew of it up to a position, what is in it."""

    name: str
    stamp: FileStamp
    known: IndexedFile | None
    known_end: Position
    scan: FileScan

    @property
    def is_new(self) -> bool:
        """True if the index has no rows of it."""
        return self.known is None or self.known.family is None

    @property
    def is_replaced(self) -> bool:
        """True if its rows in the index have to be replaced."""
        is_continued = self.scan.is_known and self.known_end.end > 0
        return self.known is not None and self.scan.is_whole and not is_continued

    def family(self) -> int | None:
        """The family it holds, if that can be found out."""
        if self.name == STORE:
            return 0
        try:
            if self.scan.first is not None:
                return self.scan.first.content().family
        except (ValueError, RecursionError):
            pass
        return family_of(self.name)
