"""Reads the SQLite file of the OpenAI Agents SDK's sessions.

    session -> conversation of the same id, which `HoldfastSession` goes on with
    item -> message, unchanged
    what was said up to the next user's message -> one checkpoint, at its last time
    created_at of a session, of items -> created_at, ``times`` of a checkpoint
    branch of an AdvancedSQLiteSession -> conversation <session>@<branch>

The tables are known by their columns, because programs may choose their names. The SDK
keeps times as whole seconds. The counts of an AdvancedSQLiteSession are not imported,
and items of an EncryptedSession stay encrypted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from hashlib import sha256
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import apsw

from holdfast.importers._fields import Fields, Moment, parsed_moment
from holdfast.importers._files import checked_text, parse, shown
from holdfast.importers._reader import Damaged, Line, Reading, Save, later
from holdfast.importers._sqlite import columns_of, is_database, opened, selected

MAIN = "main"
_SESSION = {"session_id", "created_at", "updated_at"}
_MESSAGE = {"id", "session_id", "message_data", "created_at"}
_STRUCTURE = {"session_id", "message_id", "branch_id", "sequence_number"}


class Tables(NamedTuple):
    """The names of the two tables of sessions, quoted for SQL."""

    sessions: str
    messages: str


class Session(NamedTuple):
    """A session of the source, or one branch of it; without a branch all items."""

    tables: Tables
    id: str
    created_at: object
    branch: str | None

    @property
    def line(self) -> Line:
        """The conversation that it becomes."""
        is_main = self.branch in (None, MAIN)
        id_ = self.id if is_main else f"{self.id}@{self.branch}"
        return Line(kind="conversation", id=id_)


class Item(NamedTuple):
    """A row of the table of messages."""

    value: dict[str, Any]
    at: int
    time: str
    digest: bytes


def recognises(path: str) -> bool:
    """True if a file is a SQLite database with the tables of sessions."""
    if not is_database(path):
        return False
    try:
        with opened(path) as db:
            return bool(_tables(db))
    except (Damaged, OSError):
        return False


def read(path: str) -> Reading:
    """All sessions of a file; it stays open until the reading is closed."""
    reading = Reading()
    with reading.attempt(shown(path)):
        db = reading.resources.enter_context(opened(path))
        found = _tables(db)
        if not found:
            raise Damaged("has no tables of sessions")
        # A session's items are read once for all its checkpoints, not kept for all.
        again = lru_cache(maxsize=1)(partial(_saves, db, shown(path)))
        for session in (s for tables in found for s in _sessions(db, tables)):
            with reading.attempt(shown(path), f"session {session.id!r}"):
                _put(reading, session, _saves(db, shown(path), session, reading), again)
    return reading


def _put(
    reading: Reading,
    session: Session,
    saves: list[Save],
    again: Callable[[Session], list[Save]],
) -> None:
    if session.line in reading.lines:
        table = session.tables.messages
        raise Damaged(f"is there a second time, in {table}; that one was left out")
    for number, save in enumerate(saves):
        reading.put(session.line, later(save, partial(_nth, again, session, number)))
    reading.count("sessions")
    reading.count("items", saves[-1].messages)


def _nth(again: Callable[[Session], list[Save]], session: Session, number: int) -> Save:
    saves = again(session)
    if number >= len(saves):
        raise Damaged("changed while it was being imported; import it again")
    return saves[number]


# --- checkpoints ----------------------------------------------------------------------


def _saves(
    db: apsw.Connection, path: str, session: Session, reading: Reading | None = None
) -> list[Save]:
    """The checkpoints of a session, one for each turn; one if it has no items."""
    reading = reading or Reading()
    begun = _moment(session.created_at, "created_at")
    items = list(_items(db, path, session, begun, reading))
    values = [item.value for item in items]
    summed = sha256(f"{session.line.id}\0{begun.text}".encode())
    saves: list[Save] = []
    for first, end in pairwise(_turns(values)):
        for item in items[first:end]:
            summed.update(item.digest)
        times = groupby(item.time for item in items[first:end])
        saves.append(
            Save(
                at=items[end - 1].at if items else begun.at,
                path=path,
                digest=summed.hexdigest()[:32],
                state=partial(_state, begun.at, values, end),
                origin={"times": [[time, len(list(n))] for time, n in times]},
                messages=end,
            )
        )
    return saves


def _state(created_at: int, values: list[dict[str, Any]], end: int) -> dict[str, Any]:
    return {"created_at": created_at, "messages": values[:end]}


def _turns(values: list[dict[str, Any]]) -> list[int]:
    """The first index of each turn, which the user's words begin, and the length."""
    by_user = [value.get("role") == "user" for value in values]
    begins = [
        number
        for number, (before, now) in enumerate(pairwise(by_user), 1)
        if now and not before
    ]
    return [0, *begins, len(values)]


# --- rows -----------------------------------------------------------------------------


def _tables(db: apsw.Connection) -> list[Tables]:
    """The pairs of tables; those of messages refer to those of sessions."""
    query = (
        'select s.name, f."table" from sqlite_schema s'
        " join pragma_foreign_key_list(s.name) f on f.\"from\" = 'session_id'"
        " where s.type = 'table' order by s.name"
    )
    return [
        Tables(_quoted(sessions), _quoted(messages))
        for messages, sessions in selected(db, query)
        if set(columns_of(db, messages)) >= _MESSAGE
        and set(columns_of(db, sessions)) >= _SESSION
    ]


def _sessions(db: apsw.Connection, tables: Tables) -> Iterator[Session]:
    """The sessions of a pair of tables, also those whose own row is missing."""
    query = (
        f"select session_id, created_at from {tables.sessions}"  # noqa: S608 - quoted
        " where typeof(session_id) = 'text' union all"
        f" select session_id, min(created_at) from {tables.messages} where session_id"
        f" not in (select ifnull(session_id, '') from {tables.sessions})"
        " group by 1 order by 1"
    )
    for id_, created_at in selected(db, query):
        for branch in _branches(db, id_):
            yield Session(tables, id_, created_at, branch)


def _branches(db: apsw.Connection, session: str) -> list[str | None]:
    """The branches that an AdvancedSQLiteSession made, else one without a name."""
    if not set(columns_of(db, "message_structure")) >= _STRUCTURE:
        return [None]
    query = "select distinct branch_id from message_structure where session_id = ?"
    return [str(branch) for (branch,) in selected(db, query, session)] or [None]


def _items(
    db: apsw.Connection, path: str, session: Session, begun: Moment, reading: Reading
) -> Iterator[Item]:
    at, messages = begun, session.tables.messages
    query = f"select m.id, cast(message_data as blob), m.created_at from {messages} m"  # noqa: S608 - quoted
    if session.branch is None:
        rows = selected(db, f"{query} where session_id = ? order by m.id", session.id)
    else:
        query += (
            " join message_structure s on s.message_id = m.id where m.session_id = ?"
            " and branch_id = ? order by sequence_number, s.id"
        )
        rows = selected(db, query, session.id, session.branch)
    for number, blob, time in rows:
        with reading.attempt(path, f"session {session.id!r}, item {number}"):
            at = _later_moment(time, at, session, reading)
            about = f"{number}\0{at.text}\0".encode()
            summed = sha256(about + (blob or b"")).digest()
            yield Item(_value(blob), at.at, at.text, summed)


def _value(blob: bytes | None) -> dict[str, Any]:
    text = checked_text((blob or b"").decode(errors="surrogateescape"))
    return Fields(parse(text)).rest


def _moment(value: object, where: str) -> Moment:
    """A time as SQLite writes it: in UTC, without saying so."""
    if not isinstance(value, str):
        raise Damaged(f"{where} is not a time but {value!r}")
    return parsed_moment(f"{value}Z", where)


def _later_moment(
    value: object, before: Moment, session: Session, reading: Reading
) -> Moment:
    try:
        return _moment(value, "created_at")
    except Damaged:
        text = "an item without a time has the time of the item before"
        reading.infer(f"session {session.id!r}: {text}")
        return before


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))
