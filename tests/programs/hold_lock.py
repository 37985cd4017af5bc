"""Holds a lock on a store until its standard input ends.

usage: hold_lock.py database|queue PATH

Prints a line when it has the lock.
"""

from __future__ import annotations

import fcntl
import os
import sys

import apsw

from inner.sqlite import page_checksums
from support.children import report


def hold(kind: str, path: str) -> object:
    if kind == "database":
        db = apsw.Connection(path, vfs=page_checksums())
        db.execute("begin immediate")
        return db
    file = os.open(f"{path}-lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


if __name__ == "__main__":
    held = hold(sys.argv[1], sys.argv[2])
    report("held")
    sys.stdin.read()
