"""A transaction of the index that is written to the files before it is made.

Temporary triggers note every row that changes. What was added becomes lines behind the
end of the file of its family; a family that lost something gets its file anew, so that
nothing of what was removed is left in it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from types import TracebackType
from typing import NamedTuple

import apsw

from holdfast.backends.directory import _catalog
from holdfast.backends.directory._catalog import File, rows
from holdfast.backends.directory._file_changes import Changes
from holdfast.backends.directory._folder import Folder
from holdfast.backends.directory._line_parts import Rows, whole_family
from holdfast.backends.directory._lines import Part, Writer
from holdfast.backends.directory._names import file_name
from holdfast.backends.sqlite import transaction
from holdfast.errors import Corrupt

CHUNK = 1 << 20
MANY = 500


class Touched(NamedTuple):
    """A row that was changed, and how: made, moved or gone."""

    what: str
    key: int | str
    family: int
    how: str


class Recording(transaction):
    """As `transaction`, and in the files.

    ``compacting`` names families whose files are written anew in any case.
    """

    __slots__ = ("_compacting", "_folder")

    def __init__(
        self, db: apsw.Connection, folder: Folder, compacting: Iterable[int] = ()
    ) -> None:
        super().__init__(db)
        self._folder = folder
        self._compacting = frozenset(compacting)

    def __enter__(self) -> None:
        super().__enter__()
        try:
            rows(self.db, "forget_touched")
        except BaseException:
            self._roll_back()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None:
            super().__exit__(kind, error, trace)
            return
        try:
            self._make()
        finally:
            self._roll_back()

    def _make(self) -> None:
        changes = Changes(self._folder)
        try:
            writing = _Writing(self.db, self._folder, changes)
            writing.plan(self._compacting)
            if not writing.is_empty:
                changes.carry_out()
                writing.remember()
            self.db.execute("commit")
        except BaseException:
            changes.take_back()
            raise
        # It is made: what cannot be tidied up now will be by whoever comes next.
        with contextlib.suppress(OSError):
            changes.finish()
            if writing.renews:
                sync_log(self.db, self._folder)


def sync_log(db: apsw.Connection, folder: Folder) -> None:
    """Let the index remember after a power cut which files there are.

    It may forget lines behind their ends, which are found then. Of a file that it does
    not know at all, it could not tell a torn end from damage.
    """
    path = db.filename
    if path:
        folder.files.sync(f"{path}-wal")


class _Writing:
    """What a transaction changed, on its way into the files."""

    def __init__(self, db: apsw.Connection, folder: Folder, changes: Changes) -> None:
        self._db = db
        self._folder = folder
        self._changes = changes
        self._written: list[tuple[str, int, Writer]] = []
        self.is_empty = False
        # Whether files were made, replaced or removed.
        self.renews = False

    def plan(self, compacting: frozenset[int]) -> None:
        """Decide about every family that was touched."""
        touched = [Touched(*row) for row in rows(self._db, "touched")]
        anew = {t.family for t in touched if t.how == "gone"} | compacting
        anew |= self._large_ones(touched)
        self.is_empty = not touched and not anew
        self._refuse_damaged(anew | {t.family for t in touched})
        for family in sorted(anew):
            self._write_anew(family)
        lines = list(_lines(self._db, (t for t in touched if t.family not in anew)))
        lines.sort(key=lambda part: part.family)
        for family, parts in groupby(lines, key=lambda part: part.family):
            self._write(family, _numbered(list(parts)))

    def _large_ones(self, touched: list[Touched]) -> set[int]:
        """New families with so many rows that they are better not all in memory."""
        counts = Counter(t.family for t in touched)
        large = {family for family, count in counts.items() if count > MANY and family}
        return {f for f in large if _catalog.file_of(self._db, f) is None}

    def _refuse_damaged(self, families: set[int]) -> None:
        for problem in _catalog.problems(self._db):
            if problem.family in families:
                raise Corrupt(problem.name, problem.what)

    def remember(self) -> None:
        """Let the index know the files as they are now."""
        for name, family, writer in self._written:
            seen = self._folder.look(name)
            assert seen is not None
            file = File(name, family, seen, seen.size, writer.tail)
            _catalog.set_file(self._db, file)
        if self.renews:
            state = _catalog.folder_state(self._db)
            now = self._folder.changed_at()
            _catalog.set_folder(self._db, state._replace(changed_at=now))

    def _write(self, family: int, parts: list[Part]) -> None:
        file = _catalog.file_of(self._db, family)
        if file is None and parts[0].thread is not None:
            self._create(file_name(parts[0].thread.name, family), family, parts)
            return
        # What is adopted may come in another order, and before it has a name.
        if file is None or _has_got_a_name(file, family, parts):
            self._write_anew(family)
            return
        writer = Writer(file.tail)
        data = b"".join(writer.encode(parts))
        self._changes.append(file.name, file.taken, data)
        self._written.append((file.name, family, writer))

    def _write_anew(self, family: int) -> None:
        file = _catalog.file_of(self._db, family)
        if file is not None:
            _catalog.forget_file(self._db, file.name)
        parts = whole_family(self._db, family)
        first = next(parts, None)
        if first is None:
            self._give_up(family, file)
            return
        if first.thread is not None:
            name = file_name(first.thread.name, family)
        else:
            name = file.name if file else file_name("", family)
        self._create(name, family, chain([first], parts))
        if file is not None and file.name != name:
            self._changes.remove(file.name)

    def _give_up(self, family: int, file: File | None) -> None:
        rows(self._db, "drop_members", family=family)
        if file is not None:
            self._changes.remove(file.name)
            self.renews = True

    def _create(self, name: str, family: int, parts: Iterable[Part]) -> None:
        writer = Writer()
        self._changes.create(name, _chunks(writer.encode(parts)))
        self._written.append((name, family, writer))
        self.renews = True


def _has_got_a_name(file: File, family: int, parts: Iterable[Part]) -> bool:
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


def _numbered(parts: list[Part]) -> list[Part]:
    if len(parts) > 1:
        for number, part in enumerate(parts, 1):
            part.part = number, len(parts)
    return parts


def _lines(db: apsw.Connection, touched: Iterable[Touched]) -> Iterator[Part]:
    """One line for each save or other write: it begins with its thread."""
    source = Rows(db)
    current: Part | None = None
    for row in touched:
        if row.what == "thread" and row.family == 0:
            continue  # one that founds a family, which it is given in the next moment
        if current is None or _begins(current, row):
            if current is not None:
                yield current
            current = Part(family=row.family)
        _add(source, current, row)
    if current is not None:
        yield current


def _begins(current: Part, row: Touched) -> bool:
    if row.family != current.family:
        return True
    if row.what == "thread":
        is_other = current.thread is None or current.thread.number != row.key
        is_filled = current.journal or current.moves or current.marks
        return is_other or bool(is_filled) or current.checkpoint is not None
    is_save = row.what == "checkpoint" and row.how == "made"
    return is_save and current.checkpoint is not None


def _add(source: Rows, part: Part, row: Touched) -> None:
    if isinstance(row.key, str):
        part.settings[row.key] = source.setting(row.key)
    elif row.what == "thread":
        if row.how == "made" or part.thread is None:
            part.thread = source.thread(row.key, moved=row.how == "moved")
    elif row.what == "checkpoint":
        _add_checkpoint(source, part, row.key, moved=row.how == "moved")
    elif row.what == "segment":
        source.add_segment(row.key, part)
    elif row.what == "journal":
        part.journal += source.entries(row.key)
    else:
        part.moves.append(source.move(row.key))


def _add_checkpoint(source: Rows, part: Part, seq: int, *, moved: bool) -> None:
    if not moved:
        part.checkpoint = source.checkpoint(seq)
    elif seq not in {mark.seq for mark in part.marks}:
        part.marks.append(source.mark(seq))
