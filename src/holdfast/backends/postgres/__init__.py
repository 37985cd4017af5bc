"""Holdfast on PostgreSQL, and what speaks its protocol: many machines, one store.

Every save on a known head is one statement and one round trip.
"""

from holdfast._values.records import Change, Page, Run, Segment
from holdfast.backends.postgres import _migrations, _outcome, _search
from holdfast.backends.postgres._adopt import admit, adopt
from holdfast.backends.postgres._backend import (
    PostgresBackend,
    open_blocking,
    open_native,
)
from holdfast.backends.postgres._commit import Committing
from holdfast.backends.postgres._connections import (
    Borrowed,
    Connections,
    borrowed,
    checked_conninfo,
    use,
)
from holdfast.backends.postgres._driver import Limit, Session, Settings, Sharing
from holdfast.backends.postgres._feed import follow
from holdfast.backends.postgres._inspection import PostgresInspection
from holdfast.backends.postgres._pools import BlockingConnections, NativeConnections
from holdfast.backends.postgres._prune import Pruning, Rehearsal
from holdfast.backends.postgres._read import (
    News,
    read_changes,
    read_one,
    read_page,
    read_segments,
)
from holdfast.backends.postgres._retry import Trial
from holdfast.backends.postgres._session import Statements
from holdfast.backends.postgres._sessions import Sessions
from holdfast.backends.postgres._statements import checked_schema, statements
from holdfast.errors import Unstorable, Unsupported

__all__ = ["PostgresBackend", "open_blocking", "open_native"]
