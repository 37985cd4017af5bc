"""The inner names of the backends that benchmarks use."""

from holdfast.backends._sql.rows import (
    NUMBER_BITS,
    CheckpointRow,
    Row,
    ThreadRow,
    segment_checksum,
)
from holdfast.backends.postgres._rows import CODEC as POSTGRES_CODEC
from holdfast.backends.sqlite import page_checksums
from holdfast.backends.sqlite._rows import CODEC as SQLITE_CODEC
from holdfast.backends.sqlite._statements import rows
