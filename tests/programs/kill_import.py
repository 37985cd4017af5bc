"""Kills an import at every checkpoint it makes, and completes it by running it again.

usage: kill_import.py FOLDER SOURCE

Prints how many points there were, and at which the store was not whole in the end.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import holdfast
from holdfast.importers import import_from
from support.report import report


def content(path: str) -> list[Any]:
    """All that was imported, whatever the order it came in."""
    found = []
    with holdfast.open(path) as store:
        assert not store.verify().problems
        for thread in store.threads(limit=None):
            history = store.thread(thread.id).history(None)
            saves = [(c.id, c.saved_at, store.load(c), c.metadata) for c in history]
            found.append((thread.id, thread.owner, thread.agent, repr(saves)))
        found.extend(pin.metadata for pin in store.threads(kind="pin", limit=None))
    return sorted(map(repr, found))


def killed_at(point: int, path: str, source: str) -> bool:
    """Import in a child that kills itself; False if it got to the end."""
    child = os.fork()
    if not child:

        def progress(done: int, total: int) -> None:
            if done == point:
                os.kill(os.getpid(), signal.SIGKILL)

        with holdfast.open(path) as store:
            import_from(store, source, progress=progress)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def wrong_at(point: int, path: str, source: str, expected: list[Any]) -> bool:
    with holdfast.open(path) as store:
        second = import_from(store, source)
        third = import_from(store, source)
    whole = second.is_complete and third.imported.checkpoints == 0
    counted = second.imported.checkpoints + second.already_there.checkpoints
    total = third.already_there.checkpoints
    return not whole or counted != total or content(path) != expected


def main(folder: str, source: str) -> None:
    reference = os.path.join(folder, "whole.db")
    with holdfast.open(reference) as store:
        assert import_from(store, source).is_complete
    expected = content(reference)
    point, wrong = 1, []
    while killed_at(point, path := os.path.join(folder, f"{point}.db"), source):
        if wrong_at(point, path, source, expected):
            wrong.append(point)
        point += 1
    report({"points": point - 1, "wrong": wrong})


if __name__ == "__main__":
    main(*sys.argv[1:])
