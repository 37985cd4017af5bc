"""A change of an encrypted file that is made without its key is noticed."""

from __future__ import annotations

import contextlib
import random
import secrets
import shutil
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

import apsw

from holdfast import HoldfastError
from holdfast._api.options import OpenOptions
from holdfast._values.records import Segment
from holdfast.backends.sqlite import connect, page_checksums
from holdfast.backends.sqlite._rows import row_checksum, segment_row
from holdfast.testing.trials.secrecy import KEY_SIZE, key_option
from holdfast.testing.trials.task import Target, Task, Trials

Tamper = Callable[[apsw.Connection, random.Random], None]


def _edit(db: apsw.Connection, chance: random.Random) -> None:
    key, data = chance.choice(_segments(db))
    changed = bytearray(data)
    changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    _put(db, key, bytes(changed))


def _swap(db: apsw.Connection, chance: random.Random) -> None:
    (one, data), (other, more) = chance.sample(_segments(db), 2)
    _put(db, one, more)
    _put(db, other, data)


def _replay(db: apsw.Connection, chance: random.Random) -> None:
    segments = _segments(db)
    (_, old), (new, _) = segments[0], chance.choice(segments[1:])
    _put(db, new, old)


def _forge(db: apsw.Connection, chance: random.Random) -> None:
    _put(db, chance.choice(_segments(db))[0], b'["forged"]')


def _delete_middle(db: apsw.Connection, chance: random.Random) -> None:
    key, _ = chance.choice(_segments(db)[1:-1])
    db.execute("delete from segment where key = ?", (key,))


def _move_head_back(db: apsw.Connection, _: random.Random) -> None:
    first = "(select min(seq) from checkpoint where family = thread.family)"
    db.execute(f"update thread set head = {first}")  # noqa: S608 - our own text


def _remove_thread(db: apsw.Connection, chance: random.Random) -> None:
    [*numbers] = db.execute("select number from thread")
    db.execute("delete from thread where number = ?", chance.choice(numbers))


# --- the log of moves; a change in its middle is noticed without a seal ---------------


def _delete_move(db: apsw.Connection, chance: random.Random) -> None:
    db.execute("delete from move where seq = ?", [chance.choice(_moves(db)[:-1])])


def _rewrite_move(db: apsw.Connection, chance: random.Random) -> None:
    elsewhere = "(select max(seq) from checkpoint) where seq = ?"
    db.execute(f"update move set source = {elsewhere}", [chance.choice(_moves(db))])  # noqa: S608


def _swap_moves(db: apsw.Connection, chance: random.Random) -> None:
    one, other = chance.sample(_moves(db), 2)
    for old, new in ((one, -1), (other, one), (-1, other)):
        db.execute("update move set seq = ? where seq = ?", (new, old))


def _copy_move(db: apsw.Connection, chance: random.Random) -> None:
    """Copy a move of another thread behind the moves of this one."""
    db.execute(
        "insert into move select (select max(seq) from move) + 1, 1, kind, source,"
        " target, moved_at, 0 from move where seq = ?",
        [chance.choice(_moves(db, 2))],
    )


def _replay_moves(db: apsw.Connection, _: random.Random) -> None:
    """Delete the move before the newest, as if an older log had got the newest."""
    [(newest,)] = db.execute("select max(seq) from move where thread = 1")
    [(last,)] = db.execute(
        "select max(seq) from move where thread = 1 and seq < ?", [newest]
    )
    db.execute("delete from move where seq = ?", [last])


def _moves(db: apsw.Connection, thread: int = 1) -> list[int]:
    found = "select seq from move where thread = ? order by seq"
    return [number for (number,) in db.execute(found, [thread])]


MOVES: Mapping[str, Tamper] = MappingProxyType(
    {
        "delete a move": _delete_move,
        "rewrite a move": _rewrite_move,
        "swap two moves": _swap_moves,
        "copy a move of another thread": _copy_move,
        "put older moves back": _replay_moves,
    }
)
WAYS: Mapping[str, Tamper] = MappingProxyType(
    {
        "edit": _edit,
        "swap": _swap,
        "replay": _replay,
        "forge": _forge,
        "delete the middle": _delete_middle,
        "move the head back": _move_head_back,
        "remove a thread": _remove_thread,
        **MOVES,
    }
)
ROLL_BACK = "roll the file back"


def _segments(db: apsw.Connection) -> list[tuple[int, bytes]]:
    found = db.execute("select key, data from segment order by key").fetchall()
    return cast("list[tuple[int, bytes]]", found)


def _put(db: apsw.Connection, key: int, data: bytes) -> None:
    """Replace the data of a segment, with a checksum that fits."""
    [(packing, count)] = db.execute(
        "select packing, count from segment where key = ?", (key,)
    )
    segment = Segment(key & 0xFFFF_FFFF, data, packing=packing, count=count)
    _, _, _, checked, _ = segment_row(key >> 32, segment)
    change = "update segment set data = ?, checksum = ? where key = ?"
    db.execute(change, (data, checked, key))


def tampering(task: Task) -> Trials:
    """Change copies of an encrypted store in every way; its seal or key tells."""
    options = key_option(secrets.token_bytes(KEY_SIZE))
    start, older = task.target.path("start"), task.target.path("older")
    _build(task.target, options)
    shutil.copy(start, older)
    with task.target.open("start", **options) as store:
        store.thread("one").append(messages=["newer"])
        seal = cast("Any", store).seal()
    wrong = _noticed(task.target, "start", seal, options)
    wrong += _noticed(task.target, "start", None, options)
    for n in range(task.count):
        way = (*WAYS, ROLL_BACK)[n % (len(WAYS) + 1)]
        copy = task.target.path("copy")
        shutil.copy(older if way == ROLL_BACK else start, copy)
        if way != ROLL_BACK:
            db = connect(copy, read_only=False, busy_timeout=0.0, vfs=page_checksums())
            with contextlib.closing(db):
                WAYS[way](db, task.chance)
                _repair_moves(db)
        known = None if way in MOVES else seal
        if not _noticed(task.target, "copy", known, options):
            wrong.append(f"{way}: not noticed")
        task.done(n + 1)
    return Trials(task.count, wrong)


def _build(target: Target, options: OpenOptions) -> None:
    with target.open("start", **options) as store:
        for name in ("one", "two"):
            thread = store.thread(name, owner="ann", metadata={"k": name})
            for n in range(6):
                thread.append(messages=[f"{name} {n} " + "x" * 600])
            thread.record("key", {"n": name})
            thread.label("begun", "@1")
            thread.rewind("@4")
            thread.undo()
            thread.rewind("@3")
            thread.rewind("@2")
            thread.undo()


def _repair_moves(db: apsw.Connection) -> None:
    db.create_scalar_function("row_checksum", row_checksum)
    said = "row_checksum(seq, thread, kind, source, target, moved_at)"
    db.execute(f"update move set checksum = {said}")  # noqa: S608 - our own text


def _noticed(
    target: Target, name: str, seal: str | None, options: OpenOptions
) -> list[str]:
    """The problems that `verify` finds, or the error of verifying or reading."""
    try:
        with target.open(name, **options) as store:
            found = cast("Any", store).verify(seal=seal).problems
            for record in store.threads(limit=None):
                store.thread(record.id).load()
    except HoldfastError as error:
        return [repr(error)]
    return [str(problem) for problem in found]
