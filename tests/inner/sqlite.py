"""Inner names of the backend on SQLite."""

from holdfast.backends import sqlite as sqlite_package
from holdfast.backends.sqlite import (
    PAGE,
    SqliteBackend,
    connect,
    page_checksums,
    snapshot,
)
from holdfast.backends.sqlite import _candidates as candidates
from holdfast.backends.sqlite import _inspection as inspection
from holdfast.backends.sqlite import _open_files as open_files
from holdfast.backends.sqlite import _search as search_index
from holdfast.backends.sqlite._connection import CHECKSUM_BYTES, FORMAT
from holdfast.backends.sqlite._damaged_file import Column, Table
from holdfast.backends.sqlite._database import Database
from holdfast.backends.sqlite._packed_manifests import pack_manifest, unpack_manifest
from holdfast.backends.sqlite._page_repair import PageFile
from holdfast.backends.sqlite._rows import CODEC, row_checksum, segment_row
from holdfast.backends.sqlite._search import DAMAGED, TABLES, UNUSED
from holdfast.backends.sqlite._statements import QUERIES
from holdfast.backends.sqlite._writer_queue import LockFile
