"""Writers that wait for each other get their turn in the order in which they came."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

import holdfast
from inner.sqlite import LockFile

LOCKS = Path("/proc/locks")
# In seconds: far more than a writer needs to begin to wait, on any machine.
PATIENCE = 100
pytestmark = pytest.mark.skipif(not LOCKS.exists(), reason="needs Linux")


@pytest.mark.parametrize("prefix", ["", "dir:"])
def test_no_writer_is_starved(tmp_path, prefix):
    """They sleep in the kernel's queue; SQLite's own polling serves them by chance."""
    url = f"{prefix}{tmp_path / 'store'}"
    stores = [holdfast.open(url, busy_timeout=2 * PATIENCE) for _ in range(5)]
    threads = [store.thread(f"own {n}") for n, store in enumerate(stores)]
    for thread in threads:
        thread.save({"n": 0})
    [file] = (path for path in tmp_path.rglob("*lock*") if path.is_file())
    holder = LockFile(str(file), PATIENCE)
    holder.open()
    assert holder.try_lock()

    writers = [
        threading.Thread(target=thread.save, args=({"n": 1},)) for thread in threads
    ]
    for before, writer in enumerate(writers):
        writer.start()
        _wait(file, before + 1)
    holder.close()
    for writer in writers:
        writer.join()

    seqs = [thread.get().seq for thread in threads]
    for store in stores:
        store.close()
    assert seqs == sorted(seqs)


def _wait(file: Path, count: int) -> None:
    """Wait until the kernel has so many in the queue for the lock of a file."""
    lock = f":{os.stat(file).st_ino} "
    deadline = time.monotonic() + PATIENCE
    queue: list[str] = []
    while len(queue) < count:
        assert time.monotonic() < deadline, "a writer does not wait in the queue"
        time.sleep(0.001)
        lines = LOCKS.read_text().splitlines()
        queue = [line for line in lines if "->" in line and lock in line]
