"""Bringing the index up to date with the files, whatever happened to them.

Lines that a crashed process synced are taken in, an end that it was still writing is
cut off, a file that somebody else has replaced is taken in anew. A damaged file is left
as it is, and so is what the index knows of it; the others go on.
"""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import apsw

from holdfast.backends.directory import _catalog
from holdfast.backends.directory._catalog import File, FolderState
from holdfast.backends.directory._file_scan import Mark, Survey, survey, unreadable
from holdfast.backends.directory._files import Seen
from holdfast.backends.directory._folder import Folder
from holdfast.backends.directory._index_rows import Collision, Loader, drop_family
from holdfast.backends.directory._lines import Line, read_lines
from holdfast.backends.directory._names import STORE, family_of
from holdfast.backends.sqlite import transaction

# Which families have to be up to date; ``None`` for all.
Scope = frozenset[int] | None
NEVER = -1


class Differences(NamedTuple):
    """Files that do not look as the index remembers them."""

    changed: dict[str, Seen]
    gone: list[File]
    changed_at: int
    is_folder_known: bool

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone) or not self.is_folder_known


def compare(db: apsw.Connection, folder: Folder, scope: Scope) -> Differences:
    """What differs between the folder and the index, as far as it matters."""
    # The folder before its files: what happens in between is found the next time.
    now = folder.changed_at()
    is_known = now == _catalog.folder_state(db).changed_at
    if scope is None or not is_known:
        return _compare_all(db, folder, now, is_known=is_known)
    changed: dict[str, Seen] = {}
    gone: list[File] = []
    for family in scope:
        file = _catalog.file_of(db, family)
        if file is not None:
            seen = folder.look(file.name)
            if seen is None:
                gone.append(file)
            elif seen != file.seen:
                changed[file.name] = seen
    return Differences(changed, gone, now, is_known)


def _compare_all(
    db: apsw.Connection, folder: Folder, now: int, *, is_known: bool
) -> Differences:
    known, found = _catalog.all_files(db), folder.listing()
    changed = {
        name: seen
        for name, seen in found.items()
        if name not in known or known[name].seen != seen
    }
    gone = [file for name, file in known.items() if name not in found]
    return Differences(changed, gone, now, is_known)


class Settling:
    """One catching up with the folder, in one transaction of the index.

    Without ``cutting`` nothing is written to any file: what was torn is passed over.
    A ``fresh`` index has never seen any of the files.
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
        """Take in what differs."""
        with transaction(self._db):
            known = _catalog.all_files(self._db)
            intakes = [
                self._look_through(name, seen, known.get(name))
                for name, seen in self._suspects(found, known)
            ]
            for file in found.gone:
                self._let_go(file)
            for intake in intakes:
                if intake.known is not None and intake.is_replaced:
                    self._let_go(intake.known)
            for intake in intakes:
                self._take_in(intake)
            self._remember(found)
        for notice in self._notices:
            warnings.warn(notice, RuntimeWarning, stacklevel=2)

    def _suspects(
        self, found: Differences, known: dict[str, File]
    ) -> list[tuple[str, Seen]]:
        """Files to look through: what was in the way of bad ones may be gone too."""
        gone = {file.name for file in found.gone}
        bad = {f.name: f.seen for f in known.values() if f.problem} | found.changed
        # Those the index knows come first: of two of a family, they have it.
        order = sorted(bad, key=lambda name: (name not in known, name))
        return [(name, bad[name]) for name in order if name not in gone]

    def _remember(self, found: Differences) -> None:
        # A new index begins anywhere: others may remember the epoch of an older one.
        before = secrets.randbits(48) if self._fresh else self._epoch()
        state = FolderState(changed_at=found.changed_at, epoch=before + self._replaced)
        _catalog.set_folder(self._db, state)

    def _epoch(self) -> int:
        return _catalog.folder_state(self._db).epoch

    def _let_go(self, file: File) -> None:
        if file.family is not None:
            drop_family(self._db, file.family)
            self._replaced = True
        _catalog.forget_file(self._db, file.name)

    # --- one file ---------------------------------------------------------------------

    def _look_through(self, name: str, seen: Seen, known: File | None) -> Intake:
        """What is to be done about a file; its torn end is gone then."""
        mark = Mark(known.taken, known.tail) if known and not known.problem else Mark()
        try:
            found = survey(self._folder.pieces(name), mark)
        except OSError as error:
            # Remembered as something it can never look like: it is tried again.
            why = f"it cannot be read: {error.strerror}"
            never = seen._replace(modified=NEVER)
            return Intake(name, never, known, mark, unreadable(why))
        # What the index knows was acknowledged, so that all behind it may be torn.
        may_cut = found.is_torn and (mark.end > 0 or (self._fresh and found.is_short))
        if not found.is_whole and may_cut:
            seen = self._cut(name, found.solid, seen)
            found = found._replace(end=found.solid, bads=(), is_open=False)
        if found.is_open and found.is_whole and self._cutting:
            seen = self._end_line(name, seen)
        return Intake(name, seen, known, mark, found)

    def _cut(self, name: str, at: Mark, seen: Seen) -> Seen:
        if not self._cutting:
            return seen
        files, path = self._folder.files, self._folder.file(name)
        kept = self._folder.tool(f"{name}.{at.end}.{seen.modified}.torn")
        files.write(kept, 0, files.read(path, at.end))
        files.sync(kept)
        files.truncate(path, at.end)
        files.sync(path)
        self._notices.append(
            f"{path} ended in {seen.size - at.end} bytes of a save that was never"
            f" finished; they were cut off and are kept in {kept}"
        )
        return self._folder.look(name) or seen

    def _end_line(self, name: str, seen: Seen) -> Seen:
        self._folder.files.write(self._folder.file(name), seen.size, b"\n")
        self._folder.files.sync(self._folder.file(name))
        return self._folder.look(name) or seen

    def _take_in(self, intake: Intake) -> None:
        problem = None if intake.survey.is_whole else intake.survey.damage
        family = intake.family()
        if family is not None and (problem is None or intake.is_new):
            problem = self._load(intake, family) or problem
        self._note(intake, family, problem)

    def _load(self, intake: Intake, family: int) -> str | None:
        """Take lines in, all or none of them; what is wrong if none."""
        start = intake.mark.end if intake.survey.is_known else 0
        try:
            with self._db:
                self._claim(intake.name, family)
                loader = Loader(self._db, family)
                for line in self._lines(intake, start):
                    loader.take_in(line.said())
        except Collision as error:
            return f"it was written apart from the other files: {error}"
        except (ValueError, RecursionError) as error:
            return f"a line does not say what lines of this format say: {error}"
        except OSError as error:
            return f"it cannot be read: {error.strerror}"
        return None

    def _claim(self, name: str, family: int) -> None:
        other = _catalog.file_of(self._db, family)
        if other is not None and other.name != name:
            raise Collision(f"family {family} is in {other.name}")

    def _lines(self, intake: Intake, start: int) -> Iterator[Line]:
        pieces = self._folder.pieces(intake.name, start)
        for line in read_lines(pieces, start):
            if line.start >= intake.survey.end.end:
                return
            if isinstance(line, Line):
                yield line

    def _note(self, intake: Intake, family: int | None, problem: str | None) -> None:
        known, end = intake.known, intake.survey.end
        other = None if family is None else _catalog.file_of(self._db, family)
        if other is not None and other.name != intake.name:
            family = None
        # Bytes that changed in a file that did not grow: no name can be new.
        is_certain = problem is None or (
            family is not None
            and known is not None
            and known.is_certain
            and known.seen.size == intake.seen.size
        )
        file = File(
            name=intake.name,
            family=family,
            seen=intake.seen,
            taken=end.end,
            tail=end.tail,
            problem=problem,
            is_certain=is_certain,
        )
        _catalog.set_file(self._db, file)


class Intake(NamedTuple):
    """A file, how it looks, what was known of it up to a mark, and what is in it."""

    name: str
    seen: Seen
    known: File | None
    mark: Mark
    survey: Survey

    @property
    def is_new(self) -> bool:
        """Whether nothing of it is in the index."""
        return self.known is None or self.known.family is None

    @property
    def is_replaced(self) -> bool:
        """Whether what is in the index has to make room for it."""
        is_continued = self.survey.is_known and self.mark.end > 0
        return self.known is not None and self.survey.is_whole and not is_continued

    def family(self) -> int | None:
        """The family it holds, if it can be told."""
        if self.name == STORE:
            return 0
        try:
            if self.survey.first is not None:
                return self.survey.first.said().family
        except (ValueError, RecursionError):
            pass
        return family_of(self.name)
