"""The number of the last acknowledged change, kept beside the database.

A log that is damaged ends for SQLite where the damage begins, and what was saved behind
it is gone without an error. So the number of every commit is written into the lock file
before the commit is acknowledged, without an fsync: after a crash it may be older than
the truth, and never newer. It belongs to one store, by the store's identity. Commits
that were not synced have a record of their own: a power cut may take these back.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import warnings
from collections.abc import Generator
from typing import Literal

import apsw
import msgspec

from holdfast._values.os_errors import NO_ROOM
from holdfast.backends.sqlite._statements import rows
from holdfast.errors import Corrupt

Durability = Literal["full", "normal"]

# Of a lock file. Its bytes must not go to where a link leads. Windows has no such flag,
# and without its own it would change bytes that look like the end of a line.
FLAGS: int = (
    getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
)

# A setting of every store: 16 random bytes.
IDENTITY = "identity"
# The identity, the number, and the number with all bits turned over: a record that is
# half-written or damaged is recognised by it.
_FIELDS = struct.Struct("<16sQQ")
_RECORD = _FIELDS.size
_ALL_BITS = (1 << 64) - 1
_PLACES: dict[Durability, int] = {"full": 0, "normal": 2 * _RECORD}
SIZE = 4 * _RECORD


class Acknowledged(msgspec.Struct, frozen=True):
    """The last changes that were acknowledged, 0 if none is known."""

    full: int = 0
    normal: int = 0

    @property
    def last(self) -> int:
        """The last one, synced or not."""
        return max(self.full, self.normal)


def identity_of(db: apsw.Connection) -> bytes:
    """The identity of a store; empty if an older version made it."""
    found = rows(db, "setting", name=IDENTITY)
    return bytes(found[0][0]) if found else b""


def mapped(file: int) -> mmap.mmap | None:
    """The records of a lock file in memory; ``None`` if it cannot have any.

    Writing there takes no call of the system; SQLite does the same with its own files.
    """
    try:
        if os.fstat(file).st_size < SIZE:
            os.write(file, bytes(SIZE))  # takes the space on the disk
        return mmap.mmap(file, SIZE)
    except (OSError, ValueError):
        return None


def write_acknowledged(
    records: mmap.mmap, identity: bytes, seq: int, durability: Durability
) -> None:
    """Keep the number of a commit, in turn in two places: one of them is whole."""
    place = _PLACES[durability] + _RECORD * (seq & 1)
    _FIELDS.pack_into(records, place, identity, seq, seq ^ _ALL_BITS)


def read_acknowledged(file: int, identity: bytes | None) -> Acknowledged:
    """The numbers that a lock file has for a store; none if it is another's.

    Without an identity, the numbers of any store.
    """
    try:
        os.lseek(file, 0, os.SEEK_SET)
        found = os.read(file, SIZE)
    except OSError:  # there is none, or it is something else
        return Acknowledged()
    return Acknowledged(
        **{
            durability: max(
                _decoded(found[at : at + _RECORD], identity)
                for at in (place, place + _RECORD)
            )
            for durability, place in _PLACES.items()
        }
    )


def check_acknowledged(
    db: apsw.Connection, path: str, file: int, *, accept_loss: bool
) -> bool:
    """True if changes are lost and accepted as lost; `Corrupt` if not accepted.

    Changes that were never synced may be lost: then there is a warning.
    """
    # In this order: another process may be saving.
    noted = read_acknowledged(file, identity_of(db))
    last: int = rows(db, "next_seq")[0][0] - 1
    if noted.last <= last or accept_loss:
        return noted.last > last
    lost = noted.last - last
    text = f"{lost} acknowledged changes are missing, the ones after change {last}"
    if noted.full > last:
        raise Corrupt(
            path,
            f"its log was cut short, or it is an older copy: {text}",
            advice="put a newer backup in its place, save the rest with"
            " holdfast.salvage(path, to), or, to go on without them, open it with"
            " accept_loss=True",
            lost=lost,
        )
    warnings.warn(f"{path}: {text}; they were not synced", RuntimeWarning, stacklevel=2)
    return True


def check_nothing_acknowledged(path: str, file: int, *, accept_loss: bool) -> bool:
    """Like `check_acknowledged`, of a file that is missing, empty or without tables.

    The tables of a store are synced before its first change is acknowledged, so no
    power cut leaves such a file.
    """
    lost = read_acknowledged(file, None).last
    if not lost or accept_loss:
        return lost > 0
    is_there = os.path.exists(path)
    put = "put a backup in its place, save the rest with holdfast.salvage(path, to),"
    raise Corrupt(
        path,
        f"{'it is empty' if is_there else 'it was removed'}, and {lost} acknowledged"
        " changes are missing",
        advice=f"{put if is_there else 'put it or a backup in its place,'} or, to begin"
        f" a new store, remove what stands beside it ({path}-wal, -shm and -lock), or"
        " open it with accept_loss=True",
        lost=lost,
    )


@contextlib.contextmanager
def lent_file(file: int, path: str) -> Generator[int]:
    """An open lock file, or one that is opened for reading; -1 if there is none."""
    lent = file
    if file < 0:
        try:
            lent = os.open(path, os.O_RDONLY | FLAGS)
        except OSError as error:
            if error.errno in NO_ROOM:  # then it is not known what it says
                raise
    try:
        yield lent
    finally:
        if lent != file:
            os.close(lent)


def forget_acknowledged(file: int) -> None:
    """Begin again; the next commit writes its number."""
    os.lseek(file, 0, os.SEEK_SET)
    os.write(file, bytes(SIZE))


def _decoded(record: bytes, identity: bytes | None) -> int:
    if len(record) < _RECORD or identity == b"":
        return 0
    owner, seq, turned = _FIELDS.unpack(record)
    is_meant = identity is None or owner == identity
    return seq if is_meant and seq == turned ^ _ALL_BITS else 0
