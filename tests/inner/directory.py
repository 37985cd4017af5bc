"""Inner names of the backend in a folder."""

from holdfast.backends import directory as directory_package
from holdfast.backends.directory import Files
from holdfast.backends.directory._blobs import (
    as_json,
    elements_as_json,
    elements_from_json,
    from_json,
)
from holdfast.backends.directory._catalog import QUERIES as CATALOG_QUERIES
from holdfast.backends.directory._file_scan import Position, scan_file
from holdfast.backends.directory._folder import WORK
from holdfast.backends.directory._lines import (
    FIRST,
    CheckpointPart,
    EntryPart,
    LineContent,
    LineEncoder,
    MarkPart,
    MovePart,
    ThreadPart,
    checked,
    encode_line,
)
from holdfast.backends.directory._names import file_name
from holdfast.backends.directory._open import FORMAT
