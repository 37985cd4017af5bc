"""The portable archive: a store, or some of its threads, in one file of known bytes.

Equal content gives equal bytes, whatever keeps it and whenever it is exported. Written
by `Store.export_to`, read by `Store.import_archive`; docs/archive.md is the format.
"""

from holdfast.archive._contents import Contents, Imported
from holdfast.archive._reader import Source, check
from holdfast.archive._target import Target

__all__ = ["Contents", "Imported", "Source", "Target", "check"]
