"""Inner names of the backend on PostgreSQL; needs psycopg."""

from holdfast.backends import postgres as postgres_package
from holdfast.backends.postgres import _listener as listener
from holdfast.backends.postgres import _search as search_index
from holdfast.backends.postgres import _timeout as timeout
from holdfast.backends.postgres import bind_role, open_blocking
from holdfast.backends.postgres._migrations import FORMAT, MIGRATIONS, prepared, split
from holdfast.backends.postgres._migrations import FUNCTIONS as FUNCTIONS_FILE
from holdfast.backends.postgres._pools import (
    MOST_PREPARED,
    BlockingConnections,
    EndingPool,
)
from holdfast.backends.postgres._roles import VIEWS
from holdfast.backends.postgres._server import Pooler, Settings, refusal
from holdfast.backends.postgres._session import BlockingSession
from holdfast.backends.postgres._statements import statements, text_of
from holdfast.backends.postgres._write import AT_ONCE
