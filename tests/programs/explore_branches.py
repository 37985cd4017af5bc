"""Explores three branches of a thread, and may be killed inside of one.

usage: explore_branches.py STORE LOG [NUMBER]

Every branch writes a line to LOG when its function begins, and saves twice. Inside of
the branch with NUMBER the process kills itself after the first save. One line of JSON:
number, status and steps of each branch.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import holdfast
from support.report import report


def main(path: str, log: str, victim: int | None) -> None:
    def work(branch: Any) -> None:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"{branch.number}\n")
        branch.thread.append(messages=["first"])
        if branch.number == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        branch.thread.append(messages=["second"])

    with holdfast.open(path) as store:
        chat = store.thread("chat")
        if chat.head is None:
            chat.save({"messages": []})
        found = chat.explore(work, n=3, at_once=1, score=lambda one: -one.number)
        report([[one.number, one.status, one.steps] for one in found])


if __name__ == "__main__":
    place, journal, *rest = sys.argv[1:]
    main(place, journal, int(rest[0]) if rest else None)
