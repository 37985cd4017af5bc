"""Children that go on with a store their parent opened.

usage: forked_children.py CASE PATH

One line of JSON: how many saves of each child were acknowledged.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable
from functools import partial

import holdfast
from holdfast import Store
from holdfast.testing.trials.children import Child
from support.report import report

Tell = Callable[[object], None]
SAVES = 30


def save(store: Store, name: str, count: int, tell: Tell) -> None:
    thread = store.thread(name)
    for n in range(count):
        thread.append(log=[n])
        tell("saved")


def together(path: str) -> dict[str, int]:
    """Parent and children save at the same time."""
    with holdfast.open(path, busy_timeout=60) as store:
        store.thread("parent").append(log=[0])
        children = {
            f"child {n}": Child(partial(save, store, f"child {n}", SAVES))
            for n in range(8)
        }
        for n in range(1, SAVES):
            store.thread("parent").append(log=[n])
        told = {name: len(child.finish()) for name, child in children.items()}
    return {**told, "parent": SAVES}


def parent_closes(path: str) -> dict[str, int]:
    """The parent closes its store while the child goes on with its own."""
    store = holdfast.open(path)
    store.thread("parent").append(log=[0])
    closed, told_closed = os.pipe()

    def outlive(tell: Tell) -> None:
        save(store, "child", 5, tell)
        tell("waiting")
        os.read(closed, 1)
        thread = store.thread("child")
        for n in range(5, 10):
            thread.append(log=[n])
            tell("saved")
        tell("done")
        os.read(closed, 1)

    child = Child(outlive)
    saved = 0
    while child.report() != "waiting":
        saved += 1
    store.close()
    os.write(told_closed, b"x")
    while child.report() != "done":
        saved += 1
    # Another process opens and closes the store while the child still has it open.
    with holdfast.open(path) as other:
        other.thread("other").append(log=[0])
    os.write(told_closed, b"x")
    child.finish()
    return {"child": saved, "parent": 1, "other": 1}


def child_exits(path: str) -> dict[str, int]:
    """A child that never used the store ends after its parent has closed it."""
    store = holdfast.open(path)
    store.thread("parent").append(log=[0])
    store.thread("parent").load()
    ending, end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.read(ending, 1)
        # The usual end: objects are destroyed, and connections with them.
        sys.exit(0)
    store.close()

    def crash(tell: Tell) -> None:
        save(holdfast.open(path), "crashed", 5, tell)
        os.kill(os.getpid(), 9)

    crashed = Child(crash)
    saved = len(crashed.wait())
    os.write(end, b"x")
    os.waitpid(pid, 0)
    return {"crashed": saved, "parent": 1}


def beside_threads(path: str) -> dict[str, int]:
    """Children are forked while other threads of the parent save."""
    warnings.simplefilter("ignore", DeprecationWarning)
    with holdfast.open(path, busy_timeout=60) as store:
        stop = threading.Event()
        counts = [0, 0]

        def work(number: int) -> None:
            while not stop.is_set():
                store.thread(f"thread {number}").append(log=[counts[number]])
                counts[number] += 1

        threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        told = {}
        for n in range(12):
            name = f"child {n}"
            told[name] = len(Child(partial(save, store, name, 5)).finish())
        stop.set()
        for thread in threads:
            thread.join()
    return {**told, "thread 0": counts[0], "thread 1": counts[1]}


CASES = {
    case.__name__: case
    for case in (together, parent_closes, child_exits, beside_threads)
}

if __name__ == "__main__":
    report(CASES[sys.argv[1]](sys.argv[2]))
