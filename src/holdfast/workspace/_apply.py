"""Carrying out an intent, forwards or backwards; each can be repeated after a crash.

A file that is not the one that the restore found is never lost: it is moved to
`.holdfast/kept-…` instead of being overwritten or removed.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Generator, Iterable

from holdfast._values.files import parents
from holdfast.workspace import _descriptors
from holdfast.workspace._disk import Disk
from holdfast.workspace._intent import Intent, Mark, Stage, Step, mark_of
from holdfast.workspace._plan import FileChange, is_below

KEPT = "kept-"
# A file system without hard links, or one that does not allow this one.
_NO_LINK = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.EXDEV}


class Application:
    """The steps of one intent; ``kept`` are files that were in the way."""

    def __init__(self, disk: Disk, top: int, stage: Stage, intent: Intent) -> None:
        self._disk = disk
        self._top = top
        self._stage = stage
        self._intent = intent
        self.kept: list[str] = []

    # --- forwards ---------------------------------------------------------------------

    def forward(self) -> None:
        """Make the files of the target."""
        steps = list(enumerate(self._intent.steps))
        for number, step in steps:
            if step.goes:
                self._set_aside(str(number), step)
        self._disk.sync(self._stage.old)
        self._sync(step.change.path for _, step in steps if not step.comes)
        removed = [path for path, _ in self._intent.removed]
        placed = {step.change.path for _, step in steps if step.comes}
        self._remove_folders(path for path in removed if is_below(path, placed))
        self._make_folders((path, 0o777) for path in self._intent.made)
        for number, step in steps:
            if step.comes:
                self._place(str(number), step)
        self._set_folder_modes(steps, forwards=True)
        # Last: to make a folder again needs space, which may not be there.
        self._remove_folders(removed)
        self._sync(step.change.path for _, step in steps)
        self._sync(self._intent.made)
        self._sync(removed)

    def _set_aside(self, number: str, step: Step) -> None:
        """Keep what goes, under a second name if another file takes its place."""
        if _mark(self._stage.old, number) is not None:
            return
        if step.comes and _mark(self._stage.new, number) is None:
            return  # it has been placed already
        with self._parent(step.change.path) as place:
            if place is None or _mark(*place) is None:
                return
            at, name = place
            if step.comes:
                try:
                    self._disk.link(at, name, self._stage.old, number)
                except OSError as error:
                    if error.errno not in _NO_LINK:
                        raise
                else:
                    return
            self._disk.rename(at, name, self._stage.old, number)

    def _place(self, number: str, step: Step) -> None:
        if _mark(self._stage.new, number) is None:
            return
        with _descriptors.parent(self._top, step.change.path) as (at, name):
            there = _mark(at, name)
            if there is not None and there != _mark(self._stage.old, number):
                if there == step.staged:  # its second name, see `_link_or_rename`
                    self._disk.unlink(self._stage.new, number)
                    return
                self._keep(at, name, number)
                there = None
            if there is None:
                self._link_or_rename(number, at, name)
            else:
                self._disk.rename(self._stage.new, number, at, name)

    def _link_or_rename(self, number: str, at: int, name: bytes) -> None:
        """Give a new file its name, which must be free: a link replaces nothing."""
        try:
            self._disk.link(self._stage.new, number, at, name)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            self._disk.rename(self._stage.new, number, at, name)
        else:
            self._disk.unlink(self._stage.new, number)

    def _keep(self, at: int, name: bytes | str, number: str) -> None:
        """Move a file that no snapshot has out of the way."""
        new = f"{KEPT}{number}"
        while _mark(self._stage.own, new) is not None:
            new += "-"
        self._disk.rename(at, name, self._stage.own, new)
        self.kept.append(new)

    # --- backwards --------------------------------------------------------------------

    def backward(self) -> None:
        """Make the files again that the restore found."""
        steps = list(enumerate(self._intent.steps))
        for _, step in reversed(steps):
            if step.comes and not step.goes:
                self._take_back(step)
        self._remove_folders(sorted(self._intent.made, reverse=True))
        self._make_folders((path, mode) for path, mode in self._intent.removed)
        for number, step in steps:
            if step.goes:
                self._put_back(str(number), step)
        self._set_folder_modes(steps, forwards=False)
        self._sync(step.change.path for _, step in steps)
        self._sync(self._intent.made)

    def _take_back(self, step: Step) -> None:
        with self._parent(step.change.path) as place:
            if place is not None and _mark(*place) == step.staged:
                self._disk.unlink(*place)

    def _put_back(self, number: str, step: Step) -> None:
        if _mark(self._stage.old, number) is None:
            return
        with _descriptors.parent(self._top, step.change.path) as (at, name):
            there = _mark(at, name)
            if there not in (None, step.staged, _mark(self._stage.old, number)):
                self._keep(at, name, number)
            self._disk.rename(self._stage.old, number, at, name)

    # --- afterwards -------------------------------------------------------------------

    def keep_strangers(self) -> None:
        """Keep what was set aside and is not what the restore found there."""
        for number, step in enumerate(self._intent.steps):
            aside = _mark(self._stage.old, str(number))
            if aside is not None and aside != step.found:
                self._keep(self._stage.old, str(number), str(number))
        if self.kept:
            self._disk.sync(self._stage.own)

    # --- folders ----------------------------------------------------------------------

    def _make_folders(self, folders: Iterable[tuple[bytes, int]]) -> None:
        for path, mode in sorted(folders):
            with (
                _descriptors.parent(self._top, path) as (at, name),
                contextlib.suppress(FileExistsError),
            ):
                self._disk.mkdir(at, name, mode)

    def _remove_folders(self, folders: Iterable[bytes]) -> None:
        """Remove folders that are empty, the deepest first."""
        for path in sorted(folders, reverse=True):
            with self._parent(path) as place:
                if place is None:
                    continue
                try:
                    self._disk.rmdir(*place)
                except OSError as error:
                    if error.errno not in _STAYS:
                        raise

    def _set_folder_modes(
        self, steps: list[tuple[int, Step]], *, forwards: bool
    ) -> None:
        for _, step in steps:
            entry = step.change.after if forwards else step.change.before
            if entry is not None and entry.is_directory:
                with _descriptors.folder(self._top, entry.path.split(b"/")) as folder:
                    self._disk.chmod(folder, entry.mode & 0o777)

    @contextlib.contextmanager
    def _parent(self, path: bytes) -> Generator[tuple[int, bytes] | None]:
        """The folder of a path and its name there; ``None`` if it is gone."""
        with contextlib.ExitStack() as stack:
            try:
                found = stack.enter_context(_descriptors.parent(self._top, path))
            except (FileNotFoundError, NotADirectoryError):
                yield None
            else:
                yield found

    def _sync(self, paths: Iterable[bytes]) -> None:
        """Make the names in the folders of some paths durable."""
        for folder in sorted({path.rpartition(b"/")[0] for path in paths}):
            parts = folder.split(b"/") if folder else []
            with contextlib.ExitStack() as stack:
                try:
                    at = stack.enter_context(_descriptors.folder(self._top, parts))
                except (FileNotFoundError, NotADirectoryError):
                    continue
                self._disk.sync(at)


_STAYS = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.ENOTDIR}


def _mark(at: int, name: bytes | str) -> Mark | None:
    try:
        return mark_of(os.stat(name, dir_fd=at, follow_symlinks=False))
    except FileNotFoundError:
        return None


def folders_made(
    changes: tuple[FileChange, ...], there: Iterable[bytes]
) -> tuple[bytes, ...]:
    """The folders that are missing for the new files; ``there`` are those present."""
    wanted = {folder for c in changes if c.after for folder in parents(c.path)}
    wanted |= {c.path for c in changes if c.after and c.after.is_directory}
    return tuple(sorted(wanted.difference(there)))
