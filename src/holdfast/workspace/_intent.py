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

import msgspec
import xxhash

from holdfast._values.files import FileEntry
from holdfast.errors import Corrupt
from holdfast.workspace import _descriptors
from holdfast.workspace._disk import Disk
from holdfast.workspace._plan import FileChange

STAGE = "restore"
INTENT, INTENT_BACK, INTENT_DONE = "intent", "intent-back", "intent-done"
INTENTS = (INTENT_BACK, INTENT_DONE, INTENT)
NEW, OLD = "new", "old"
UNFINISHED = "unfinished"


class Mark(msgspec.Struct, frozen=True):
    """What tells whether a file is still the one that the restore found or made."""

    inode: int
    size: int
    changed_at: int  # a second name changes st_ctime, so this is st_mtime


def mark_of(found: os.stat_result) -> Mark:
    """The mark of a file that is there."""
    return Mark(found.st_ino, found.st_size, found.st_mtime_ns)


class StateMove(msgspec.Struct, frozen=True):
    """The head that a thread gets with the files."""

    thread: str
    checkpoint: str
    expect: str | None


class Step(msgspec.Struct, frozen=True):
    """One change with the marks of the file that goes and of the one that comes."""

    change: FileChange
    found: Mark | None
    staged: Mark | None

    @property
    def goes(self) -> bool:
        """Whether a file is replaced or removed."""
        return _is_file(self.change.before)

    @property
    def comes(self) -> bool:
        """Whether there is a new file."""
        return _is_file(self.change.after)


def _is_file(entry: FileEntry | None) -> bool:
    return entry is not None and not entry.is_directory


class Intent(msgspec.Struct, frozen=True):
    """All that has to be done; ``made`` and ``removed`` are folders."""

    steps: tuple[Step, ...]
    made: tuple[bytes, ...]
    removed: tuple[tuple[bytes, int], ...]
    state: StateMove | None = None


def encode(intent: Intent) -> bytes:
    """An intent as bytes that show whether they are whole."""
    payload = msgspec.msgpack.encode(intent)
    return xxhash.xxh3_128_digest(payload) + payload


def decode(data: bytes) -> Intent:
    """The intent in a file. It was synced before its name was: damage is no crash."""
    if xxhash.xxh3_128_digest(data[16:]) != data[:16]:
        raise Corrupt("the intent of a restore", advice=_ADVICE)
    return msgspec.msgpack.decode(data[16:], type=Intent)


_ADVICE = "look into .holdfast/restore and remove it; the store has both snapshots"


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
            return decode(data), name
    return None


def _read(at: int, name: str) -> bytes:
    with _descriptors.opened(name, _descriptors.READ, at) as file:
        return b"".join(_descriptors.pieces(file))


def write_file(
    disk: Disk, stage: Stage, number: int, entry: FileEntry, content: bytes
) -> Mark:
    """Write a new file beside, synced."""
    name = str(number)
    if entry.is_link:
        disk.symlink(stage.new, name, content)
    else:
        disk.write(stage.new, name, content, entry.mode & 0o777)
    return mark_of(os.stat(name, dir_fd=stage.new, follow_symlinks=False))


def commit(disk: Disk, stage: Stage, intent: Intent) -> None:
    """The moment from which on the restore will be finished."""
    for folder in (stage.new, stage.at, stage.own):
        disk.sync(folder)
    disk.write(stage.at, f"{INTENT}.new", encode(intent), 0o600)
    disk.rename(stage.at, f"{INTENT}.new", stage.at, INTENT)
    disk.sync(stage.at)
