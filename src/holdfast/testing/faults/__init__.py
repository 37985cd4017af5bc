"""Faults on purpose, for tests: a disk that fills up, fails, tears writes and forgets.

A `FaultyDisk` counts every read, write, sync, truncate, delete and rename of files that
hold something. A `Fault` says what happens at which of these calls: `disk_full`,
`io_error`, `kill`, or any function of yours. Here the disk is full from the first write
on, and the state that was saved before is still there:

>>> import tempfile, holdfast
>>> from holdfast.testing.faults import Fault, FaultyDisk, disk_full
>>> disk = FaultyDisk("example")
>>> store = disk.open(tempfile.mkdtemp() + "/store.db")
>>> thread = store.thread("chat")
>>> _ = thread.save({"turn": 1})
>>> disk.arm(Fault(at=1, effect=disk_full, lasting=True))
>>> try:
...     thread.save({"turn": 2})
... except holdfast.HoldfastError as error:
...     print(error.code)
disk_full
>>> calls = disk.heal()
>>> thread.load()
{'turn': 1}
>>> store.close()
>>> disk.remove()

If you write a backend that keeps files, run it on such a disk. A SQLite connection uses
it if it is opened with ``vfs=disk.name``; plain files if they are written with the
methods of ``disk.files``, which is a `holdfast.backends.directory.Files`. Save once
without a fault to count the calls. Then, for every number up to that count, save again
with a `Fault` at that call, open the store again, and check that it holds all that was
acknowledged and no part of anything else. With ``effect=kill`` do this in a process of
its own. A `Platter` remembers what has been synced, and writes the files that a power
cut at this moment could leave behind.
"""

from holdfast.testing.faults._disk import (
    CHANGES,
    Call,
    Fault,
    FaultyDisk,
    disk_full,
    io_error,
    kill,
)
from holdfast.testing.faults._power import Platter

__all__ = [
    "CHANGES",
    "Call",
    "Fault",
    "FaultyDisk",
    "Platter",
    "disk_full",
    "io_error",
    "kill",
]
