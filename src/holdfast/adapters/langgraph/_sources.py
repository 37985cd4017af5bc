"""The tables of LangGraph's own savers, in SQLite and PostgreSQL, which are only read.

Both have checkpoints and writes by thread, namespace and id. In SQLite a checkpoint is
one blob; in PostgreSQL its channels stand apart, by version.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

import msgspec
import ormsgpack

from holdfast.adapters.langgraph._names import Place
from holdfast.adapters.langgraph._serializer import Reader
from holdfast.errors import FormatMismatch, NotFound, Unsupported
from holdfast.importers import Damaged
from holdfast.importers import _sqlite as sqlite
from holdfast.importers.langgraph import is_address

_Row = tuple[Any, ...]
# The rows of a query.
Select = Callable[..., list[_Row]]


class Foreign(msgspec.Struct, frozen=True):
    """A checkpoint of another saver, as it says itself."""

    id: str
    parent: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]


class ForeignWrite(msgspec.Struct, frozen=True):
    """What a task wrote on a checkpoint; the value is still as it was stored."""

    task: str
    path: str
    index: int
    channel: str
    kind: str
    data: bytes


class Statements(msgspec.Struct, frozen=True, kw_only=True):
    """How a database is asked; a place is always a thread and a namespace."""

    tables: str
    has_path: str
    places: str
    ids: str
    checkpoint: str
    written: str
    writes: str
    writes_without_path: str


class Source:
    """A database to import from, called ``shown`` in reports."""

    statements: Statements

    def __init__(self, select: Select, shown: str, reader: Reader) -> None:
        self._select, self.shown, self._reader = select, shown, reader
        if not self._has_tables():
            raise FormatMismatch(
                f"{shown} holds no checkpoints of LangGraph; give the file of a"
                " SqliteSaver or the address of a PostgresSaver",
                code="unknown_format",
            )
        has_path = self._select(self.statements.has_path) != [(0,)]
        self._writes = (
            self.statements.writes if has_path else self.statements.writes_without_path
        )

    def _has_tables(self) -> bool:
        try:
            return self._select(self.statements.tables) == [(2,)]
        except Damaged:
            return False

    def places(self) -> list[Place]:
        """All namespaces of all threads; what was used last comes last."""
        return [Place(t, ns) for t, ns, _ in self._select(self.statements.places)]

    def ids(self, place: Place) -> list[str]:
        """The checkpoints of a namespace, oldest first."""
        rows = self._select(self.statements.ids, place.thread, place.ns)
        return [id_ for (id_,) in rows]

    def written(self, place: Place) -> list[str]:
        """The checkpoints that there are writes on."""
        rows = self._select(self.statements.written, place.thread, place.ns)
        return [id_ for (id_,) in rows]

    def writes(self, place: Place, id_: str) -> list[ForeignWrite]:
        """The writes on a checkpoint."""
        rows = self._select(self._writes, place.thread, place.ns, id_)
        return [ForeignWrite(*row) for row in rows]

    def checkpoint(self, place: Place, id_: str) -> Foreign:
        """A checkpoint with its channels."""
        statement = self.statements.checkpoint
        [row] = self._select(statement, place.thread, place.ns, id_)
        return self._foreign(place, id_, row)

    def _foreign(self, place: Place, id_: str, row: _Row) -> Foreign:
        raise NotImplementedError


@contextmanager
def opened(source: str | os.PathLike[str], reader: Reader) -> Generator[Source]:
    """The database at an address, for as long as it is needed."""
    address = os.fspath(source)
    if is_address(address):
        parts = urlsplit(address)
        shown = f"postgresql://{parts.hostname or ''}{parts.path}"
        with _postgres(address, shown) as select:
            yield PostgresSource(select, shown, reader)
    else:
        with _sqlite(os.path.expanduser(address)) as select:
            yield SqliteSource(select, address, reader)


# --- SQLite ---------------------------------------------------------------------------


class SqliteSource(Source):
    """The file of a ``SqliteSaver``."""

    statements = Statements(
        tables="select count(*) from sqlite_schema"
        " where type = 'table' and name in ('checkpoints', 'writes')",
        has_path="select count(*) from pragma_table_info('writes')"
        " where name = 'task_path'",
        places="select thread_id, checkpoint_ns, max(checkpoint_id) from ("
        " select thread_id, checkpoint_ns, checkpoint_id from checkpoints union all"
        " select thread_id, checkpoint_ns, checkpoint_id from writes)"
        " group by 1, 2 order by 3",
        ids="select checkpoint_id from checkpoints"
        " where thread_id = ? and checkpoint_ns = ? order by 1",
        checkpoint="select parent_checkpoint_id, type, checkpoint, metadata"
        " from checkpoints"
        " where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ?",
        written="select distinct checkpoint_id from writes"
        " where thread_id = ? and checkpoint_ns = ? order by 1",
        writes="select task_id, task_path, idx, channel, type, value from writes"
        " where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ?",
        writes_without_path="select task_id, '', idx, channel, type, value from writes"
        " where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ?",
    )

    def _foreign(self, place: Place, id_: str, row: _Row) -> Foreign:
        del place
        parent, kind, data, metadata = row
        checkpoint = self._reader.read(kind, data)
        return Foreign(id_, parent or None, checkpoint, _metadata(metadata))


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
            db = stack.enter_context(sqlite.opened(path))
        except Damaged as damage:
            raise FormatMismatch(f"{path} {damage}", code="unreadable") from None
        yield partial(sqlite.selected, db)


# --- PostgreSQL -----------------------------------------------------------------------


class PostgresSource(Source):
    """The tables of a ``PostgresSaver``, wherever the connection finds them."""

    statements = Statements(
        tables="select count(*)::int from"
        " (values (to_regclass('checkpoints')), (to_regclass('checkpoint_writes')))"
        " as t (name) where name is not null",
        has_path="select count(*)::int from pg_attribute"
        " where attrelid = to_regclass('checkpoint_writes') and attname = 'task_path'",
        places="select thread_id, checkpoint_ns, max(checkpoint_id) from ("
        " select thread_id, checkpoint_ns, checkpoint_id from checkpoints union all"
        " select thread_id, checkpoint_ns, checkpoint_id from checkpoint_writes) t"
        " group by 1, 2 order by 3",
        ids="select checkpoint_id from checkpoints"
        " where thread_id = %s and checkpoint_ns = %s order by 1",
        checkpoint="select parent_checkpoint_id, checkpoint, metadata"
        " from checkpoints"
        " where thread_id = %s and checkpoint_ns = %s and checkpoint_id = %s",
        written="select distinct checkpoint_id from checkpoint_writes"
        " where thread_id = %s and checkpoint_ns = %s order by 1",
        writes="select task_id, task_path, idx, channel, type, blob"
        " from checkpoint_writes"
        " where thread_id = %s and checkpoint_ns = %s and checkpoint_id = %s",
        writes_without_path="select task_id, '', idx, channel, type, blob"
        " from checkpoint_writes"
        " where thread_id = %s and checkpoint_ns = %s and checkpoint_id = %s",
    )
    channels = (
        "select channel, type, blob from checkpoint_blobs"
        " where thread_id = %s and checkpoint_ns = %s and (channel, version) in"
        " (select * from unnest(%s::text[], %s::text[]))"
    )

    def _foreign(self, place: Place, id_: str, row: _Row) -> Foreign:
        parent, checkpoint, metadata = row
        # Plain values stand in the checkpoint; `true` also where a snapshot is apart.
        values: dict[str, Any] = checkpoint.get("channel_values") or {}
        values |= self._channels(place, checkpoint["channel_versions"])
        found: dict[str, Any] = {**checkpoint, "channel_values": values}
        return Foreign(id_, parent or None, found, metadata)

    def _channels(self, place: Place, versions: dict[str, Any]) -> dict[str, Any]:
        texts = [str(version) for version in versions.values()]
        rows = self._select(
            self.channels, place.thread, place.ns, list(versions), texts
        )
        return {
            channel: self._reader.read(kind, data)
            for channel, kind, data in rows
            if kind != "empty"
        }


@contextmanager
def _postgres(address: str, shown: str) -> Generator[Select]:
    """A connection that sees one state of the database and changes nothing."""
    try:
        psycopg = import_module("psycopg")
    except ImportError as error:
        raise Unsupported(
            "PostgreSQL needs the extra: pip install 'holdfast[postgres]'",
            code="missing_extra",
        ) from error
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
