"""Lossless import from earlier systems, from frameworks' files, and by plugins.

`import_from` reads a file or a folder and saves its content to a store. It never
changes the source, can be repeated, and reports what it could not read or had to guess.
Only one thing is lost: a null becomes the same as a missing list or object.
A package adds a format by offering a `Reader` as a ``holdfast.importers`` entry point;
`opened` and `selected` read a foreign SQLite file for it.
"""

from __future__ import annotations

import os
from collections.abc import Coroutine
from typing import Any, Unpack, overload

from holdfast._api.plugins import ImportOptions
from holdfast._api.store import AsyncStore, Store
from holdfast._values.records import Progress
from holdfast.errors import Unstorable
from holdfast.importers._import import import_into
from holdfast.importers._reader import (
    Bundle,
    Damaged,
    Finding,
    Line,
    Reader,
    Reading,
    Save,
    later,
)
from holdfast.importers._report import Counts, Report
from holdfast.importers._sources import formats
from holdfast.importers._sqlite import opened, selected

__all__ = [
    "Bundle",
    "Counts",
    "Damaged",
    "Finding",
    "Line",
    "Progress",
    "Reader",
    "Reading",
    "Report",
    "Save",
    "formats",
    "import_from",
    "import_into",
    "later",
    "opened",
    "selected",
]


@overload
def import_from(
    store: Store, path: str | os.PathLike[str], **options: Unpack[ImportOptions]
) -> Report: ...
@overload
def import_from(
    store: AsyncStore, path: str | os.PathLike[str], **options: Unpack[ImportOptions]
) -> Coroutine[Any, Any, Report]: ...
def import_from(
    store: Store | AsyncStore,
    path: str | os.PathLike[str],
    **options: Unpack[ImportOptions],
) -> Report | Coroutine[Any, Any, Report]:
    """Put the content of a foreign file or folder into a store.

    With an `AsyncStore` the result has to be awaited. ``format`` is one of `formats`;
    without it the files decide: a folder is imported in each format that it holds, also
    the databases in it. `FormatMismatch` is raised if there is none, or if one file
    could be of two. With ``dry_run`` nothing is written. ``progress`` is called with
    the number of finished checkpoints and the number of all, and counts again from 0
    for each format; for an `AsyncStore` in another thread. The source is never changed.
    Damage in it is reported, and the rest is imported.
    """
    # A program without a type checker may give anything.
    if not isinstance(store, Store | AsyncStore):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Unstorable("store", "must be a store; pass holdfast.open(...)")
    return store.import_from(path, **options)
