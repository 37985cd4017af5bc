"""The driver's errors as ours, translated in one place."""

from __future__ import annotations

import re
from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection, errors

from holdfast._port import Write
from holdfast.backends._sql.conflicts import taken_id, taken_segment
from holdfast.backends.postgres._server import Pooler
from holdfast.errors import Busy, Conflict, FormatMismatch, HoldfastError, Unsupported

# The code that `enter` raises if the schema has another format than the program.
OTHER_FORMAT = "HF001"
# The server ended the transaction because of a conflict with another one.
CONTENDED = (errors.SerializationFailure, errors.DeadlockDetected)
# Not translated: the backend's own code handles these.
NOT_TRANSLATED = (*CONTENDED, errors.UniqueViolation)
# The server shuts down or starts: another connection may work.
TURNED_AWAY = (
    errors.AdminShutdown,
    errors.CrashShutdown,
    errors.CannotConnectNow,
    errors.IdleInTransactionSessionTimeout,
    errors.IdleSessionTimeout,
)
# The statement was prepared in another session.
NOT_PREPARED = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
# The statement could not even be cancelled: the server may still carry it out.
NO_ANSWER = (
    "the server did not answer in time; it may still do what was asked: look before you"
    " repeat a change, or repeat it with the same `expect` or `id`"
)
_KEY = re.compile(r"\b(checkpoint|segment)_\w+")
# The code of errors about a right that the role of the database lacks.
NOT_ALLOWED = "not_allowed"
# psycopg has no public name for it.
WAIT_TIMEOUT: type[psycopg.Error] = vars(errors)["_WaitTimeout"]


class Lost(Exception):
    """The connection broke; the last statement may have taken effect or not."""


class Unreached(Lost):
    """No connection could be made: nothing can have taken effect."""


class OnlyReads(Lost):
    """The server refuses to write: a standby perhaps, beside a new primary."""


class NoneFree(Unreached):
    """No connection was free in time; the server may be well."""


# Errors that leave a session in order, so that it can go back to the pool.
ORDERLY = (HoldfastError, psycopg.Error, Lost)


def broken(lost: Lost) -> HoldfastError:
    """The caller's error when no connection could be had, or kept, in time."""
    if isinstance(lost, NoneFree):
        return Busy(f"{lost}; retry")
    return HoldfastError(
        f"the connection to PostgreSQL broke: {lost}; retry when it is back",
        code="connection_lost",
    )


class translated:  # noqa: N801 - used as a function would be
    """Turns the driver's errors into ours.

    Without ``pooler`` the connection is the caller's, and is never closed here.
    """

    __slots__ = ("_connection", "_pooler")

    def __init__(
        self,
        connection: Connection[Any] | AsyncConnection[Any],
        pooler: Pooler | None = None,
    ) -> None:
        self._connection = connection
        self._pooler = pooler

    def __enter__(self) -> None:
        """Do nothing: errors are translated at the end."""

    def __exit__(
        self, kind: object, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, psycopg.Error):
            translate(error, self._connection, self._pooler)


def translate(
    error: psycopg.Error,
    connection: Connection[Any] | AsyncConnection[Any],
    pooler: Pooler | None,
) -> None:
    """Raise one of our errors for one of the driver's, unless callers handle it."""
    if isinstance(error, NOT_TRANSLATED):
        return
    gone = connection.closed or connection.broken
    if pooler is not None:
        found = _own_translation(error, pooler, gone=gone)
        if isinstance(found, Lost) or isinstance(error, WAIT_TIMEOUT):
            connection.pgconn.finish()  # it must not be used again
        raise found from error
    raise (Lost(_text(error)) if gone else _translation(error)) from error


def _own_translation(
    error: psycopg.Error, pooler: Pooler, *, gone: bool
) -> Lost | HoldfastError:
    if isinstance(error, NOT_PREPARED):
        pooler.in_use = True
        return Lost(_text(error))
    if isinstance(error, WAIT_TIMEOUT):
        return Busy(NO_ANSWER, code="no_answer")
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return OnlyReads(_text(error))
    # Errors of the server have a code. libpq keeps a connection whose socket has failed
    # in a way that it does not know.
    is_unanswered = isinstance(error, psycopg.OperationalError) and not error.sqlstate
    if gone or is_unanswered or isinstance(error, TURNED_AWAY):
        return Lost(_text(error))
    if "cached plan" in str(error):
        return Lost(_text(error))
    return _translation(error)


def _translation(error: psycopg.Error) -> HoldfastError:
    text = _text(error)
    if error.sqlstate == OTHER_FORMAT:
        return FormatMismatch(
            f"{error.diag.message_primary}: another version of Holdfast has migrated"
            " it while it was open here; this change was not saved: start this program"
            " again with that version"
        )
    if isinstance(error, errors.QueryCanceled | errors.LockNotAvailable):
        return Busy(f"the server gave up waiting: {text}; retry")
    if isinstance(error, errors.InsufficientPrivilege):
        who = "let the owner of the tables do it, or grant the right"
        return Unsupported(f"the role may not do this: {text}; {who}", code=NOT_ALLOWED)
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return Unsupported(f"the transaction only reads: {text}", code="read_only")
    if isinstance(error, errors.DiskFull):
        return HoldfastError(f"the server's disk is full: {text}", code="disk_full")
    return HoldfastError(f"PostgreSQL refused: {text}", code="database")


def taken(write: Write, error: errors.UniqueViolation) -> Conflict:
    """Another transaction took a number, name or id that a write wanted."""
    table = _table(error)
    if write.checkpoint is not None and table.startswith("checkpoint"):
        return taken_id(write.thread, write.checkpoint.id)
    if table.startswith("segment"):
        return taken_segment(write.thread)
    return Conflict(
        f"thread {write.thread!r} is being changed by another transaction;"
        " repeat the change",
        thread=write.thread,
    )


def _table(error: errors.UniqueViolation) -> str:
    """The table of a key that is taken, or a partition, which is named after it.

    Citus passes on what a shard said without the field; the message, in any language,
    has the name of the key, which begins with that of its table.
    """
    if error.diag.table_name:
        return error.diag.table_name
    found = _KEY.search(error.diag.message_primary or "")
    return found[0] if found else ""


def _text(error: psycopg.Error) -> str:
    return str(error).strip() or type(error).__name__
