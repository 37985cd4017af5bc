"""Two readers of a database who relieve one another until standard input ends.

usage: relieve_readers.py PATH

There is always one of them in a transaction. Prints a line when they begin.
"""

from __future__ import annotations

import sqlite3
import sys
import threading

from support.report import report


def read(path, mine, other):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    while True:
        mine.wait()
        mine.clear()
        db.execute("begin")
        db.execute("select count(*) from thread").fetchone()
        other.set()  # the other begins before this one ends
        mine.wait()
        db.execute("commit")


def main(path):
    turns = threading.Event(), threading.Event()
    for mine, other in (turns, turns[::-1]):
        threading.Thread(target=read, args=(path, mine, other), daemon=True).start()
    turns[0].set()
    report("held")
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
