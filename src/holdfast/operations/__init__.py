"""Operations of your own, for adapters that need more than the methods of a store.

An operation is a coroutine function whose first parameter is a `Context`. It never
waits for anything but the context's backend, so that one text serves both APIs:
``store.runner.run(operation, ...)`` runs it, and ``store.runner.save(operation, thread,
...)`` one that changes a single thread. The rooms of this package hold what operations
are made of: `threads`, `effects`, `transcripts`, `graphs`, `claude`, `values`, and
`objects` for frameworks that store any. The writes and queries for a backend come from
`holdfast.backends`.

Most adapters need none of this; docs/writing-an-adapter.md shows one that uses the
methods of a store only. The methods stay; these names may change with a release before
version 1.0.
"""

from holdfast._api.options import OpenOptions
from holdfast._api.plugins import import_extra
from holdfast._api.runner import Named, Operation
from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context

__all__ = [
    "Context",
    "Named",
    "OpenOptions",
    "OpenedCheckpoint",
    "Operation",
    "import_extra",
]
