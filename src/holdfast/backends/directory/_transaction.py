"""A transaction of the index that is written to the files before it is committed.

Temporary triggers note every row that changes. Rows that were added become lines at the
end of their family's file, and so does the forgetting of journal entries. The file of a
family that lost other rows is written again as a whole, so that nothing of what was
removed is left in it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import NamedTuple

import apsw

from holdfast.backends.directory import _catalog
from holdfast.backends.directory._catalog import IndexedFile, rows
from holdfast.backends.directory._file_changes import FileChanges
from holdfast.backends.directory._folder import (
    UNKNOWN,
    UNSAVED,
    UNSYNCED,
    Folder,
    FolderErrors,
    failure,
)
from holdfast.backends.directory._line_parts import RowReader, whole_family
from holdfast.backends.directory._lines import LineContent, LineEncoder
from holdfast.backends.directory._names import STORE, file_name
from holdfast.backends.directory._open import FORMAT
from holdfast.backends.sqlite import transaction
from holdfast.errors import Corrupt

CHUNK = 1 << 20
MANY = 500


class TouchedRow(NamedTuple):
    """A row that was changed, and how: made, moved, forgotten or gone."""

    what: str
    key: int | str
    family: int
    how: str


class FolderTransaction:
    """A transaction whose changes are in the files before they are in the index.

    ``compacting`` names families whose files are written again in any case.
    """

    __slots__ = ("_compacting", "_db", "_folder", "_transaction")

    def __init__(
        self, db: apsw.Connection, folder: Folder, compacting: Iterable[int] = ()
    ) -> None:
        self._db = db
        self._transaction = transaction(db)
        self._folder = folder
        self._compacting = frozenset(compacting)

    def __enter__(self) -> apsw.Cursor:
        cursor = self._transaction.__enter__()
        try:
            rows(self._db, "forget_touched")
        except BaseException:
            self._transaction.roll_back()
            raise
        return cursor

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        with FolderErrors(self._db.filename, self._folder.path, UNSAVED):
            if isinstance(error, apsw.Error):
                self._transaction.roll_back()
                raise error
            if error is not None:
                self._transaction.__exit__(kind, error, trace)
                return
            try:
                self._commit()
            finally:
                self._transaction.roll_back()

    def _commit(self) -> None:
        changes = FileChanges(self._folder)
        plan = _FilePlan(self._db, self._folder, changes)
        if not self._change_files(plan, changes):
            return
        try:
            plan.remember()
            self._db.execute("commit")
        except (apsw.Error, OSError):
            if plan.is_empty:
                raise
            # The files have it. The next request takes it into the index from there,
            # before it gives a number that this change has.
            self._folder.leave_unfinished()
            return
        except BaseException:
            changes.undo()
            raise
        # It is made. If tidying up fails, the next process with the lock does it.
        with contextlib.suppress(OSError):
            changes.finish()
            if plan.renews:
                sync_log(self._db, self._folder)

    def _change_files(self, plan: _FilePlan, changes: FileChanges) -> bool:
        """True if all changes are in the files; else an intent has the rest."""
        try:
            plan.prepare(self._compacting)
            if not plan.is_empty:
                changes.carry_out()
        except OSError as error:
            if changes.undo():
                raise
            self._folder.leave_unfinished()
            if not changes.will_be_completed:
                outcome = UNSYNCED if changes.has_replaced else UNKNOWN
                raise failure(error, self._folder.path, outcome) from error
            return False
        except BaseException:
            changes.undo()
            raise
        return True


def sync_log(db: apsw.Connection, folder: Folder) -> None:
    """Make the index remember after a power cut which files there are.

    It may forget the last lines of a file, because they are found there again. But in a
    file that it does not know at all, it could not tell a torn end from damage.
    """
    path = db.filename
    if path:
        folder.files.sync(f"{path}-wal")


class _FilePlan:
    """The changes of files for the changes of a transaction."""

    def __init__(
        self, db: apsw.Connection, folder: Folder, changes: FileChanges
    ) -> None:
        self._db = db
        self._folder = folder
        self._changes = changes
        self._written: list[tuple[str, int, LineEncoder]] = []
        self.is_empty = False
        # Whether files were made, replaced or removed.
        self.renews = False

    def prepare(self, compacting: frozenset[int]) -> None:
        """Decide what to do for every family that was touched."""
        touched = [TouchedRow(*row) for row in rows(self._db, "touched")]
        whole = {t.family for t in touched if t.how == "gone"} | compacting
        whole |= self._large_new_families(touched)
        self.is_empty = not touched and not whole
        self._refuse_damaged(whole | {t.family for t in touched})
        for family in sorted(whole):
            self._write_whole(family) if family else self._write_settings()
        lines = list(_lines(self._db, (t for t in touched if t.family not in whole)))
        lines.sort(key=lambda part: part.family)
        for family, parts in groupby(lines, key=lambda part: part.family):
            self._write(family, _numbered(list(parts)))

    def _large_new_families(self, touched: list[TouchedRow]) -> set[int]:
        """New families with too many rows to have all their lines in memory."""
        counts = Counter(t.family for t in touched)
        large = {family for family, count in counts.items() if count > MANY and family}
        return {f for f in large if _catalog.file_of(self._db, f) is None}

    def _refuse_damaged(self, families: set[int]) -> None:
        for problem in _catalog.problems(self._db):
            if problem.family in families:
                raise Corrupt(problem.name, problem.what)

    def remember(self) -> None:
        """Note in the index what the files are now."""
        for name, family, writer in self._written:
            stamp = self._folder.stamp(name)
            assert stamp is not None
            file = IndexedFile(name, family, stamp, stamp.size, writer.tail)
            _catalog.set_file(self._db, file)
        if self.renews:
            state = _catalog.folder_state(self._db)
            now = self._folder.changed_at()
            _catalog.set_folder(self._db, state._replace(changed_at=now))

    def _write(self, family: int, parts: list[LineContent]) -> None:
        file = _catalog.file_of(self._db, family)
        if file is None and parts[0].thread is not None:
            self._create(file_name(parts[0].thread.name, family), family, parts)
            return
        # Adopted records may come in another order, and before the thread has a name.
        if file is None or _gets_a_name(file, family, parts):
            self._write_whole(family)
            return
        writer = LineEncoder(file.tail)
        data = b"".join(writer.encode(parts))
        self._changes.append(file.name, file.taken, data)
        self._written.append((file.name, family, writer))

    def _write_whole(self, family: int) -> None:
        file = _catalog.file_of(self._db, family)
        if file is not None:
            _catalog.forget_file(self._db, file.name)
        parts = whole_family(self._db, family)
        first = next(parts, None)
        if first is None:
            self._drop_file(family, file)
            return
        if first.thread is not None:
            name = file_name(first.thread.name, family)
        else:
            name = file.name if file else file_name("", family)
        self._create(name, family, chain([first], parts))
        if file is not None and file.name != name:
            self._changes.remove(file.name)

    def _write_settings(self) -> None:
        """Write the file of the store again: nothing is left of what was replaced."""
        source = RowReader(self._db)
        names = [name for (name,) in rows(self._db, "setting_names")]
        settings = {name: source.setting(name) for name in names}
        self._create(STORE, 0, [LineContent(format=FORMAT, settings=settings)])

    def _drop_file(self, family: int, file: IndexedFile | None) -> None:
        rows(self._db, "drop_members", family=family)
        if file is not None:
            self._changes.remove(file.name)
            self.renews = True

    def _create(self, name: str, family: int, parts: Iterable[LineContent]) -> None:
        writer = LineEncoder()
        self._changes.create(name, _chunks(writer.encode(parts)))
        self._written.append((name, family, writer))
        self.renews = True


def _gets_a_name(file: IndexedFile, family: int, parts: Iterable[LineContent]) -> bool:
    nameless = file_name("", family)
    return file.name == nameless and any(
        part.thread is not None and file_name(part.thread.name, family) != nameless
        for part in parts
    )


def _chunks(lines: Iterable[bytes]) -> Iterator[bytes]:
    chunk = bytearray()
    for line in lines:
        chunk += line
        if len(chunk) >= CHUNK:
            yield bytes(chunk)
            chunk.clear()
    if chunk:
        yield bytes(chunk)


def _numbered(parts: list[LineContent]) -> list[LineContent]:
    if len(parts) > 1:
        for number, part in enumerate(parts, 1):
            part.part = number, len(parts)
    return parts


def _lines(db: apsw.Connection, touched: Iterable[TouchedRow]) -> Iterator[LineContent]:
    """One line for each save or other write; its first row is that of its thread."""
    source = RowReader(db)
    current: LineContent | None = None
    for row in touched:
        if row.what == "thread" and row.family == 0:
            continue  # it starts a family, whose number it gets by the next statement
        if current is None or _starts_line(current, row):
            if current is not None:
                yield current
            current = LineContent(family=row.family)
        _add(source, current, row)
    if current is not None:
        yield current


def _starts_line(current: LineContent, row: TouchedRow) -> bool:
    if row.family != current.family:
        return True
    if row.what == "thread":
        is_other = current.thread is None or current.thread.number != row.key
        is_filled = current.journal or current.moves or current.marks
        return is_other or bool(is_filled) or current.checkpoint is not None
    is_save = row.what == "checkpoint" and row.how == "made"
    return is_save and current.checkpoint is not None


def _add(source: RowReader, part: LineContent, row: TouchedRow) -> None:
    if isinstance(row.key, str):
        part.settings[row.key] = source.setting(row.key)
    elif row.what == "thread":
        if row.how == "made" or part.thread is None:
            part.thread = source.thread(row.key, moved=row.how == "moved")
    elif row.what == "checkpoint":
        _add_checkpoint(source, part, row.key, moved=row.how == "moved")
    elif row.what == "segment":
        source.add_segment(row.key, part)
    elif row.how == "forgotten":
        part.forgotten.append(row.key)
    elif row.what == "journal":
        part.journal += source.entries(row.key)
    else:
        part.moves.append(source.move(row.key))


def _add_checkpoint(
    source: RowReader, part: LineContent, seq: int, *, moved: bool
) -> None:
    if not moved:
        part.checkpoint = source.checkpoint(seq)
    elif seq not in {mark.seq for mark in part.marks}:
        part.marks.append(source.mark(seq))
