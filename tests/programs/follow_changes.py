"""Writers in processes of their own, and one process that follows what they do.

usage: follow_changes.py URL WRITERS COUNT [OPTION...]

One line of JSON: the numbers of the changes in the order in which they were told, and
how many each writer made. With the option "untold" no listener is notified.
"""

from __future__ import annotations

import sys
from functools import partial

import holdfast
import inner.postgres  # noqa: F401 - once, before the children are made
from support.children import Child, Gate, report


def write(url: str, rank: int, count: int, gate: Gate, tell) -> None:
    with holdfast.open(url, busy_timeout=60, pool=(1, 1)) as store:
        gate.wait()
        own, shared = store.thread(f"own {rank}"), store.thread("shared")
        for n in range(count):
            saved = own.append(log=[n])
            tell([saved.seq, saved.id])
            saved = shared.append(log=[[rank, n]])
            tell([saved.seq, saved.id])


def follow(url: str, wanted: int, options: dict[str, bool], gate: Gate, tell) -> None:
    with holdfast.open(url, busy_timeout=60, pool=(1, 1), **options) as store:
        gate.wait()
        seen = cursor = 0
        while seen < wanted:
            page = store.changes(cursor, limit=50, timeout=60)
            cursor = page.cursor
            seen += len(page)
            for change in page:
                tell([change.seq, change.subject])


def main(url: str, writers: int, count: int, *options: str) -> None:
    holdfast.open(url).close()
    gate = Gate(writers + 1)
    chosen = {"pgbouncer": "untold" in options}
    wanted = writers * count * 2
    follower = Child(partial(follow, url, wanted, chosen, gate))
    children = [Child(partial(write, url, n, count, gate)) for n in range(writers)]
    gate.open()
    # Read while they write: a pipe that is full would stop them.
    told = list(follower.reports())
    saved = [child.finish() for child in children]
    follower.finish()
    report({"told": told, "saved": saved})


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
