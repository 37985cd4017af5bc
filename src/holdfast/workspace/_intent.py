"""A restore under way, as the next process finds it.

`.holdfast/restore/` has the new files in `new`, the replaced ones in `old`, both named
by the number of the change, and the `intent`. While there is no intent, nothing in the
folder has been touched. With it, all contents are there: any process can finish. An
intent that was renamed to `intent-back` is undone instead; one that is `intent-done` is
finished, and the store has it as well.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Generator
from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast._values.files import OWN_FOLDER, FileEntry, wrong_path
from holdfast._values.typed import prepare
from holdfast.errors import Conflict, Corrupt
from holdfast.workspace import _descriptors, _seal
from holdfast.workspace._disk import Disk
from holdfast.workspace._plan import FileChange

STAGE = "restore"
INTENT, INTENT_BACK, INTENT_DONE = "intent", "intent-back", "intent-done"
INTENTS = (INTENT_BACK, INTENT_DONE, INTENT)
NEW, OLD = "new", "old"
UNFINISHED = "unfinished"


class Mark(msgspec.Struct, frozen=True):
    """Tells if a file is still the one that the restore found or made."""

    inode: int
    size: int
    changed_at: int  # a second name changes st_ctime, so this is st_mtime


def mark_of(found: os.stat_result) -> Mark:
    """The mark of a file that is there."""
    return Mark(found.st_ino, found.st_size, found.st_mtime_ns)


class StateMove(msgspec.Struct, frozen=True):
    """The checkpoint whose files are restored; if it ``moves``, the state as well."""

    thread: str
    checkpoint: str
    expect: str | None
    moves: bool = True


class Step(msgspec.Struct, frozen=True):
    """One change with the marks of the file that goes and of the one that comes."""

    change: FileChange
    found: Mark | None
    staged: Mark | None

    @property
    def goes(self) -> bool:
        """True if a file is replaced or removed."""
        return _is_file(self.change.before)

    @property
    def comes(self) -> bool:
        """True if there is a new file."""
        return _is_file(self.change.after)


def _is_file(entry: FileEntry | None) -> bool:
    return entry is not None and not entry.is_directory


class Intent(msgspec.Struct, frozen=True):
    """The steps of a restore; ``made`` and ``removed`` are folders."""

    steps: tuple[Step, ...]
    made: tuple[bytes, ...]
    removed: tuple[tuple[bytes, Annotated[int, Meta(ge=0, le=0o777)]], ...]
    state: StateMove | None = None


prepare(Intent)


def encode(own: int, intent: Intent) -> bytes:
    """An intent for a folder `.holdfast`, as bytes that show who wrote them."""
    return _seal.sealed(own, INTENT, msgspec.msgpack.encode(intent))


def decode(own: int, data: bytes) -> Intent:
    """The intent in a file: only one that this user wrote here for this folder."""
    payload = _seal.unsealed(own, INTENT, data)
    if payload is None:
        raise foreign(f"{OWN_FOLDER}/{STAGE}")
    try:
        intent = msgspec.msgpack.decode(payload, type=Intent)
    except (ValueError, RecursionError) as error:
        raise Corrupt("a restore under way", str(error), advice=_ADVICE) from error
    paths = [*intent.made, *(path for path, _ in intent.removed)]
    for change in (step.change for step in intent.steps):
        entries = (each for each in (change.before, change.after) if each is not None)
        paths += [change.path, *(entry.path for entry in entries)]
    if (wrong := wrong_path(paths)) is not None:
        raise Corrupt("a restore under way", wrong, advice=_ADVICE)
    return intent


_ADVICE = f"move {OWN_FOLDER}/{STAGE} elsewhere; the store has both snapshots"


def foreign(name: str) -> Conflict:
    """The error for what a folder has and this user did not write here."""
    return Conflict(
        f"{name} in this folder is of a restore that this user did not begin on this"
        " machine, or not in this folder; nothing of it was carried out; move it"
        " elsewhere. If the restore was yours, make it again then, with force=True: the"
        " store has both snapshots",
        code="foreign_restore",
    )


# --- the folder of a restore ----------------------------------------------------------


class Stage(msgspec.Struct, frozen=True):
    """The open folders of a restore under way; ``own`` is `.holdfast`."""

    own: int
    at: int
    new: int
    old: int


@contextlib.contextmanager
def stage(own: int) -> Generator[Stage]:
    """The folder of a restore, which must be there."""
    with (
        _descriptors.opened(STAGE, _descriptors.FOLDER, own) as at,
        _descriptors.opened(NEW, _descriptors.FOLDER, at) as new,
        _descriptors.opened(OLD, _descriptors.FOLDER, at) as old,
    ):
        yield Stage(own, at, new, old)


def make_stage(disk: Disk, own: int) -> None:
    """Make the folder of a restore; what an earlier one left is removed."""
    clear_stage(disk, own)
    disk.mkdir(own, STAGE, 0o700)
    with _descriptors.opened(STAGE, _descriptors.FOLDER, own) as at:
        disk.mkdir(at, NEW, 0o700)
        disk.mkdir(at, OLD, 0o700)


def clear_stage(disk: Disk, own: int) -> None:
    """Remove the folder of a restore, whatever of it is there; no intent may be."""
    with (
        contextlib.suppress(FileNotFoundError),
        _descriptors.opened(STAGE, _descriptors.FOLDER, own) as at,
    ):
        for name in os.listdir(at):
            _remove(disk, at, name)
    with contextlib.suppress(FileNotFoundError):
        disk.rmdir(own, STAGE)


def _remove(disk: Disk, at: int, name: str) -> None:
    if not stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
        disk.unlink(at, name)
        return
    with _descriptors.opened(name, _descriptors.FOLDER, at) as inside:
        for each in os.listdir(inside):
            disk.unlink(inside, each)
    disk.rmdir(at, name)


def find_intent(own: int) -> tuple[Intent, str] | None:
    """The intent that a crash left, and the name of its file."""
    for name in INTENTS:
        with contextlib.suppress(FileNotFoundError):
            with _descriptors.opened(STAGE, _descriptors.FOLDER, own) as at:
                data = _read(at, name)
            return decode(own, data), name
    return None


def _read(at: int, name: str) -> bytes:
    with _descriptors.opened(name, _descriptors.READ, at) as file:
        return b"".join(_descriptors.pieces(file))


def write_file(
    disk: Disk, stage: Stage, number: int, entry: FileEntry, content: bytes
) -> Mark:
    """Write a new file beside, synced."""
    name = str(number)
    if entry.is_link and b"\0" in content:
        raise Corrupt(f"the link {entry.name!r}", "its target has a zero byte")
    if entry.is_link:
        disk.symlink(stage.new, name, content)
    else:
        disk.write(stage.new, name, content, entry.mode & 0o777)
    return mark_of(os.stat(name, dir_fd=stage.new, follow_symlinks=False))


def commit(disk: Disk, stage: Stage, intent: Intent) -> None:
    """The moment from which on the restore will be finished."""
    for folder in (stage.new, stage.at, stage.own):
        disk.sync(folder)
    disk.write(stage.at, f"{INTENT}.new", encode(stage.own, intent), 0o600)
    disk.rename(stage.at, f"{INTENT}.new", stage.at, INTENT)
    disk.sync(stage.at)
