"""The portable archive: a store, or some of its threads, in one file.

Equal content gives equal bytes, for every backend and at any time. `Store.export_to`
writes an archive and `Store.import_archive` reads it; docs/archive.md is the format.
"""

from holdfast.archive._contents import Contents, Imported
from holdfast.archive._reader import Source, check
from holdfast.archive._target import Target

__all__ = ["Contents", "Imported", "Source", "Target", "check"]
