"""Opens a new place on PostgreSQL at the same moment as others, and saves to it.

usage: open_together.py URL SCHEMA PROCESSES

One line of JSON for each process: the error it met, or null.
"""

from __future__ import annotations

import sys
from functools import partial

import holdfast
import inner.postgres  # noqa: F401 - once, before the children are made
from support.children import Child, Gate, report


def open_first(url: str, schema: str, rank: int, gate: Gate, tell) -> None:
    gate.wait()
    try:
        with holdfast.open(url, schema=schema, pool=(1, 1)) as store:
            store.thread(f"started {rank}").save({"rank": rank})
    except Exception as error:  # noqa: BLE001 - whatever it was is what is asked for
        tell({"error": repr(error)})
    else:
        tell({"error": None})


def main(url: str, schema: str, processes: int) -> None:
    gate = Gate(processes)
    children = [
        Child(partial(open_first, url, schema, rank, gate)) for rank in range(processes)
    ]
    gate.open()
    for child in children:
        [result] = child.wait() or [{"error": f"ended with status {child.status}"}]
        report(result)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
