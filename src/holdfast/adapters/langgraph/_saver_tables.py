"""Reads the tables of LangGraph's own savers, in SQLite and PostgreSQL.

Both have checkpoints and writes by thread, namespace and id. In SQLite a checkpoint is
one blob; in PostgreSQL its channels are in a separate table, by version.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec
import ormsgpack

from holdfast.adapters.langgraph._decoder import Decoder
from holdfast.adapters.langgraph._namespace import Namespace
from holdfast.errors import FormatMismatch, NotFound
from holdfast.importers import Damaged, selected
from holdfast.importers import opened as opened_sqlite
from holdfast.importers.langgraph import is_address
from holdfast.operations import import_extra

_Row = tuple[Any, ...]
# Runs a query with its parameters and returns the rows.
Select = Callable[..., list[_Row]]

# The queries for the tables of both savers, in the syntax of SQLite.
_NAMESPACES = (
    "select thread_id, checkpoint_ns, max(checkpoint_id) from ("
    " select thread_id, checkpoint_ns, checkpoint_id from checkpoints union all"
    " select thread_id, checkpoint_ns, checkpoint_id from writes) t"
    " group by 1, 2 order by 3"
)
_IDS = (
    "select checkpoint_id from checkpoints"
    " where thread_id = ? and checkpoint_ns = ? order by 1"
)
_WRITTEN = (
    "select distinct checkpoint_id from writes"
    " where thread_id = ? and checkpoint_ns = ? order by 1"
)
_WRITES = (
    "select task_id, task_path, idx, channel, type, value from writes"
    " where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ?"
)


class ForeignCheckpoint(msgspec.Struct, frozen=True):
    """A checkpoint of another saver, with the parent that the saver gives it."""

    id: str
    parent: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]


class ForeignWrite(msgspec.Struct, frozen=True):
    """A write of a task on a checkpoint; the value is not decoded yet."""

    task: str
    path: str
    index: int
    channel: str
    kind: str
    data: bytes


class SaverTables:
    """The tables of a saver; ``shown`` is the name of the database in reports."""

    count_tables: str
    count_paths: str
    checkpoint_query: str

    def __init__(self, select: Select, shown: str, decoder: Decoder) -> None:
        self._select, self.shown, self._decoder = select, shown, decoder
        if not self._has_tables():
            raise FormatMismatch(
                f"{shown} holds no checkpoints of LangGraph; give the file of a"
                " SqliteSaver or the address of a PostgresSaver",
                code="unknown_format",
            )
        # Early versions of the savers have no paths of tasks.
        has_path = self._select(self.count_paths) != [(0,)]
        self._writes = _WRITES if has_path else _WRITES.replace("task_path", "''")

    def _has_tables(self) -> bool:
        try:
            return self._select(self.count_tables) == [(2,)]
        except Damaged:
            return False

    def namespaces(self) -> list[Namespace]:
        """All namespaces of all threads, the last used one at the end."""
        return [Namespace(t, ns) for t, ns, _ in self._rows(_NAMESPACES)]

    def ids(self, namespace: Namespace) -> list[str]:
        """The checkpoints of a namespace, oldest first."""
        rows = self._rows(_IDS, namespace.thread, namespace.ns)
        return [id_ for (id_,) in rows]

    def written(self, namespace: Namespace) -> list[str]:
        """The checkpoints that have writes."""
        rows = self._rows(_WRITTEN, namespace.thread, namespace.ns)
        return [id_ for (id_,) in rows]

    def writes(self, namespace: Namespace, id_: str) -> list[ForeignWrite]:
        """The writes on a checkpoint."""
        rows = self._rows(self._writes, namespace.thread, namespace.ns, id_)
        return [ForeignWrite(*row) for row in rows]

    def checkpoint(self, namespace: Namespace, id_: str) -> ForeignCheckpoint:
        """A checkpoint with its channels."""
        query = self.checkpoint_query
        [row] = self._rows(query, namespace.thread, namespace.ns, id_)
        return self._foreign(namespace, id_, row)

    def _rows(self, query: str, *values: object) -> list[_Row]:
        """The rows of a query that is spelled as in SQLite."""
        return self._select(query, *values)

    def _foreign(self, namespace: Namespace, id_: str, row: _Row) -> ForeignCheckpoint:
        raise NotImplementedError


@contextmanager
def opened(source: str | os.PathLike[str], decoder: Decoder) -> Generator[SaverTables]:
    """The tables at an address; the database is closed at the end of the block."""
    address = os.fspath(source)
    if is_address(address):
        parts = urlsplit(address)
        shown = f"postgresql://{parts.hostname or ''}{parts.path}"
        with _postgres(address, shown) as select:
            yield PostgresTables(select, shown, decoder)
    else:
        with _sqlite(os.path.expanduser(address)) as select:
            yield SqliteTables(select, address, decoder)


# --- SQLite ---------------------------------------------------------------------------


class SqliteTables(SaverTables):
    """The file of a ``SqliteSaver``."""

    count_tables = (
        "select count(*) from sqlite_schema"
        " where type = 'table' and name in ('checkpoints', 'writes')"
    )
    count_paths = (
        "select count(*) from pragma_table_info('writes') where name = 'task_path'"
    )
    checkpoint_query = (
        "select parent_checkpoint_id, type, checkpoint, metadata from checkpoints"
        " where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ?"
    )

    def _foreign(self, namespace: Namespace, id_: str, row: _Row) -> ForeignCheckpoint:
        del namespace
        parent, kind, data, metadata = row
        checkpoint = self._decoder.read(kind, data)
        return ForeignCheckpoint(id_, parent or None, checkpoint, _metadata(metadata))


def _metadata(data: Any) -> dict[str, Any]:
    if data is None:
        return {}
    try:
        found: dict[str, Any] = json.loads(data)
    except ValueError:
        try:  # as early versions wrote it
            found = ormsgpack.unpackb(data)
        except ValueError:
            raise Damaged("has metadata that cannot be read") from None
    return found


@contextmanager
def _sqlite(path: str) -> Generator[Select]:
    if not os.path.isfile(path):
        raise NotFound(f"there is no file {path}; give one or a postgresql:// address")
    with ExitStack() as stack:
        try:
            db = stack.enter_context(opened_sqlite(path))
        except Damaged as damage:
            raise FormatMismatch(f"{path} {damage}", code="unreadable") from None
        yield partial(selected, db)


# --- PostgreSQL -----------------------------------------------------------------------


class PostgresTables(SaverTables):
    """The tables of a ``PostgresSaver`` in the search path of the connection."""

    count_tables = (
        "select count(*)::int from"
        " (values (to_regclass('checkpoints')), (to_regclass('checkpoint_writes')))"
        " as t (name) where name is not null"
    )
    count_paths = (
        "select count(*)::int from pg_attribute"
        " where attrelid = to_regclass('checkpoint_writes') and attname = 'task_path'"
    )
    checkpoint_query = (
        "select parent_checkpoint_id, checkpoint, metadata from checkpoints"
        " where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ?"
    )
    channels = (
        "select channel, type, blob from checkpoint_blobs"
        " where thread_id = %s and checkpoint_ns = %s and (channel, version) in"
        " (select * from unnest(%s::text[], %s::text[]))"
    )

    def _rows(self, query: str, *values: object) -> list[_Row]:
        query = query.replace("from writes", "from checkpoint_writes")
        query = query.replace(" value from", " blob from").replace("?", "%s")
        return self._select(query, *values)

    def _foreign(self, namespace: Namespace, id_: str, row: _Row) -> ForeignCheckpoint:
        parent, checkpoint, metadata = row
        # Plain values are in the checkpoint itself; `true` there can also mean that
        # the value is a snapshot in the table of channels.
        values: dict[str, Any] = checkpoint.get("channel_values") or {}
        values |= self._channels(namespace, checkpoint["channel_versions"])
        found: dict[str, Any] = {**checkpoint, "channel_values": values}
        return ForeignCheckpoint(id_, parent or None, found, metadata)

    def _channels(
        self, namespace: Namespace, versions: dict[str, Any]
    ) -> dict[str, Any]:
        texts = [str(version) for version in versions.values()]
        rows = self._select(
            self.channels, namespace.thread, namespace.ns, list(versions), texts
        )
        return {
            channel: self._decoder.read(kind, data)
            for channel, kind, data in rows
            if kind != "empty"
        }


@contextmanager
def _postgres(address: str, shown: str) -> Generator[Select]:
    """A connection in one read-only transaction, so that all rows are of one moment."""
    psycopg = import_extra("psycopg", "PostgreSQL", "postgres")
    try:
        connection = psycopg.connect(address)
    except psycopg.Error as error:
        why = " ".join(str(error).split())
        text = f"{shown} cannot be reached: {why}; check the address and the server"
        raise NotFound(text) from error
    with connection as db:
        db.execute("set transaction isolation level repeatable read read only")

        def select(query: str, *values: object) -> list[_Row]:
            try:
                rows: list[_Row] = db.execute(query, values).fetchall()
            except psycopg.Error as error:
                raise Damaged(f"cannot be read: {error}") from None
            return rows

        yield select
