"""Inner names that the backends with SQL share."""

from holdfast.backends import _sql as sql_package
from holdfast.backends._sql.rows import PACKED, CheckpointRow, EntryRow
