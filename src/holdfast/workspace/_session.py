"""A folder that is locked for a restore, and the restore's steps in it. Blocking."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from typing import TypeVar

import msgspec

from holdfast._values.files import OWN_FOLDER, FileEntry, Tree, parents
from holdfast._values.os_errors import writing
from holdfast._values.typed import prepare
from holdfast.errors import Conflict, Unsupported
from holdfast.workspace import _intent, _seal
from holdfast.workspace._apply import Application, folders_made
from holdfast.workspace._disk import Disk
from holdfast.workspace._intent import Intent, Mark, StateMove, Step, mark_of
from holdfast.workspace._obstacles import look, obstacles, remaining
from holdfast.workspace._own_folder import OwnFolder
from holdfast.workspace._plan import FileChange, Plan
from holdfast.workspace._rules import RULE_FILES
from holdfast.workspace._scan import Scanner
from holdfast.workspace._snapshot import Contents, FolderSnapshot

T = TypeVar("T")

UNDO = "undo"


class UndoRecord(msgspec.Struct, frozen=True):
    """The way to take the last restore back."""

    thread: str
    recovery: str
    state: bool


prepare(UndoRecord)


class Session:
    """One restore in a folder; the lock is held by the caller."""

    def __init__(
        self, path: str, top: int, own: OwnFolder, scanner: Scanner, disk: Disk
    ) -> None:
        if own.at is None:
            raise Unsupported(
                f"{path} cannot be written; restore into another folder (into=)"
            )
        self.path = path
        self.top = top
        self.own = own
        self.scanner = scanner
        self.disk = disk
        self.young = 0
        self.snapshot = FolderSnapshot(path, Tree(), Contents(None))
        self.kept: list[str] = []
        self._at = own.at
        self._marks: dict[bytes, Mark] = {}
        self._found: dict[bytes, Mark] = {}

    # --- before anything is written ---------------------------------------------------

    def scan(self) -> FolderSnapshot:
        """The files as they are now."""
        self.snapshot = self.scanner.scan(self.top, self.own, self.young)
        return self.snapshot

    def check(self, plan: Plan) -> tuple[Plan, tuple[bytes, ...]]:
        """The plan without what is there already, and what stands in its way."""
        changes = remaining(self.top, plan.changes)
        paths = {change.path for change in changes}
        kept = tuple(path for path in plan.conflicts if path in paths)
        found = obstacles(self.top, changes)
        self._found = _marks(self.top, changes)
        return msgspec.structs.replace(plan, changes=changes, conflicts=kept), found

    # --- beside -----------------------------------------------------------------------

    def begin(self) -> None:
        """Make the folder for the new files."""
        _seal.make_secret()
        with writing(self.path):
            _intent.make_stage(self.disk, self._at)

    def write(self, number: int, entry: FileEntry, content: bytes) -> None:
        """Write a new file beside."""
        path = os.path.join(self.path, os.fsdecode(entry.path))
        with writing(path), _intent.stage(self._at) as stage:
            mark = _intent.write_file(self.disk, stage, number, entry, content)
        self._marks[entry.path] = mark

    def commit(self, plan: Plan, target: Tree, state: StateMove | None) -> None:
        """Write the intent, unless a file was changed since it was looked at."""
        changes = plan.changes
        marks = _marks(self.top, changes)
        late = [path for path, mark in marks.items() if mark != self._found.get(path)]
        if late:
            raise Conflict(
                f"{os.fsdecode(late[0])} was changed while the restore was prepared;"
                " restore again",
                code="files_changed",
                paths=tuple(map(os.fsdecode, late)),
            )
        intent = self._intent(changes, target, state)
        with writing(self.path), _intent.stage(self._at) as stage:
            _intent.commit(self.disk, stage, intent)

    def _intent(
        self, changes: tuple[FileChange, ...], target: Tree, state: StateMove | None
    ) -> Intent:
        removed = _folders_removed(self.top, changes, target)
        wanted = folders_made(changes, ())
        there = [path for path in wanted if _is_folder(self.top, path)]
        gone = {path for path, _ in removed}
        return Intent(
            steps=tuple(
                Step(c, self._found.get(c.path), self._marks.get(c.path))
                for c in changes
            ),
            made=folders_made(changes, [p for p in there if p not in gone]),
            removed=removed,
            state=state,
        )

    def abandon(self) -> None:
        """Remove what was written beside; the folder was not touched."""
        with contextlib.suppress(OSError):
            _intent.clear_stage(self.disk, self._at)

    # --- in place ---------------------------------------------------------------------

    def forward(self) -> None:
        """Exchange the files."""
        with writing(self.path), _applied(self) as application:
            application.forward()
            self.kept += application.kept

    def backward(self) -> None:
        """Exchange them back; if that fails too, the next opening does it."""
        with writing(self.path):
            with _intent.stage(self._at) as stage:
                self.disk.rename(
                    stage.at, _intent.INTENT, stage.at, _intent.INTENT_BACK
                )
            with _applied(self) as application:
                application.backward()
            self.finish()

    def finish(self, *, unfinished: StateMove | None = None) -> None:
        """Remove the intent, and then what it no longer needs."""
        with (
            writing(self.path),
            _applied(self) as application,
            _intent.stage(self._at) as stage,
        ):
            application.keep_strangers()
            self.kept += application.kept
            if unfinished is not None:
                before = self.interrupted()
                moves = unfinished.moves or (before is not None and before.moves)
                record = msgspec.structs.replace(unfinished, moves=moves)
                write_sealed(self.own, _intent.UNFINISHED, record)
            for name in _intent.INTENTS:
                with contextlib.suppress(FileNotFoundError):
                    self.disk.unlink(stage.at, name)
            self.disk.sync(stage.at)
        with contextlib.suppress(OSError):  # the next restore does it
            _intent.clear_stage(self.disk, self._at)

    def recover(self) -> None:
        """Finish, or undo, what a crash has left."""
        found = _intent.find_intent(self._at)
        if found is None:
            return
        intent, name = found
        with writing(self.path), _applied(self) as application:
            is_back = name == _intent.INTENT_BACK
            application.backward() if is_back else application.forward()
            self.kept += application.kept
        self.finish(unfinished=intent.state if name == _intent.INTENT else None)

    def interrupted(self) -> StateMove | None:
        """The restore that a crash interrupted, whose files were put in place since."""
        with contextlib.suppress(Conflict):  # another user's says nothing
            return read_sealed(self.own, _intent.UNFINISHED, StateMove)
        return None

    # --- afterwards -------------------------------------------------------------------

    def restored(self, plan: Plan) -> FolderSnapshot | None:
        """The files after the restore, ``None`` if they have to be walked again: rules
        were restored, or a folder may be empty now.
        """
        names = {os.path.basename(os.fsdecode(c.path)) for c in plan.changes}
        if names & set(RULE_FILES) or any(_is_about_folders(c) for c in plan.changes):
            return None
        tree = self.snapshot.tree
        after = {c.path: c.after for c in plan.changes if c.after is not None}
        tree = Tree(tree.entries | after, tree.rules, tree.omitted)
        return FolderSnapshot(self.path, tree, Contents(None))

    def scan_again(self) -> FolderSnapshot:
        """The files as they are after the restore."""
        return self.scanner.scan(self.top, self.own, self.young)

    def remember(self, record: UndoRecord) -> None:
        """Write down how this restore is taken back."""
        with writing(self.path):
            write_sealed(self.own, UNDO, record)

    def followed(self) -> None:
        """The thread has the files, too: after a crash its state is not waited for."""
        with contextlib.suppress(OSError), _intent.stage(self._at) as stage:
            self.disk.rename(stage.at, _intent.INTENT, stage.at, _intent.INTENT_DONE)
            self.disk.sync(stage.at)
            self.own.remove(_intent.UNFINISHED)


def write_sealed(own: OwnFolder, name: str, record: msgspec.Struct) -> None:
    """Write what a later opening acts on; `read_sealed` gives it to this user only."""
    assert own.at is not None
    own.write(name, _seal.sealed(own.at, name, msgspec.msgpack.encode(record)))


def read_sealed(own: OwnFolder, name: str, kind: type[T]) -> T | None:
    """The sealed record; `Conflict` if another user sealed it, or elsewhere."""
    data = own.read(name)
    if data is None or own.at is None:
        return None
    payload = _seal.unsealed(own.at, name, data)
    with contextlib.suppress(ValueError, RecursionError):  # of another version
        if payload is not None:
            return msgspec.msgpack.decode(payload, type=kind)
    raise _intent.foreign(f"{OWN_FOLDER}/{name}")


def _is_about_folders(change: FileChange) -> bool:
    """True if a change can make another folder empty, or not empty any more."""
    before, after = change.before, change.after
    return before is None or after is None or after.is_directory


@contextlib.contextmanager
def _applied(session: Session) -> Generator[Application]:
    at = session.own.at
    assert at is not None
    found = _intent.find_intent(at)
    assert found is not None
    with _intent.stage(at) as stage:
        yield Application(session.disk, session.top, stage, found[0])


def _marks(top: int, changes: tuple[FileChange, ...]) -> dict[bytes, Mark]:
    found = {c.path: look(top, c.path) for c in changes if c.before is not None}
    return {path: mark_of(about) for path, about in found.items() if about}


def _is_folder(top: int, path: bytes) -> bool:
    about = look(top, path)
    return about is not None and about.st_mode & 0o170000 == 0o040000  # noqa: PLR2004


def _folders_removed(
    top: int, changes: tuple[FileChange, ...], target: Tree
) -> tuple[tuple[bytes, int], ...]:
    """Folders that are empty after a restore, and that the target does not have."""
    gone = [c.path for c in changes if c.before is not None and c.after is None]
    candidates = {folder for path in gone for folder in parents(path)} | {
        c.path for c in changes if c.before is not None and c.before.is_directory
    }
    if not candidates:
        return ()
    stay = {folder for path in target.entries for folder in parents(path)}
    stay |= {path for path, each in target.entries.items() if each.is_directory}
    found = ((path, look(top, path)) for path in sorted(candidates - stay))
    return tuple((path, about.st_mode & 0o777) for path, about in found if about)
