"""Another SQLite opens the file of a store: nothing acknowledged is lost by that."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial

from holdfast import HoldfastError, Thread
from holdfast.testing.faults import Call, kill
from holdfast.testing.trials.children import Child, Tell
from holdfast.testing.trials.scenario import lost_appends
from holdfast.testing.trials.task import NotRun, Target, Task, Trials

SAVES = 20
PROGRAM = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute(sys.argv[2]).fetchall()
connection.close()
"""
COUNT, CHECKPOINT = "select count(*) from checkpoint", "pragma wal_checkpoint"


def foreign_tools(task: Task) -> Trials:
    """A plain SQLite reads or checkpoints a store after a crash, and a live one."""
    if importlib.util.find_spec("sqlite3") is None:
        raise NotRun("this Python has no sqlite3")
    # The store warns that it repairs page checksums: expected here.
    warnings.simplefilter("ignore")
    ways = (_after_a_crash, _while_it_is_open, _after_reading_the_file)
    wrong: list[str] = []
    for n in range(task.count):
        way = ways[n % len(ways)]
        name = f"{n}.db"
        try:
            acknowledged = way(task.target, name)
            with task.target.open(name, cache_size=0) as store:
                lost = lost_appends(store, acknowledged)
            wrong += [f"{way.__name__[1:]}: {what}" for what in lost]
        except HoldfastError as error:
            wrong.append(f"{way.__name__[1:]}: {error!r}")
        task.done(n + 1)
    return Trials(task.count, wrong)


def _use(target: Target, name: str, statement: str) -> None:
    """Run a statement on the file in a process without Holdfast."""
    arguments = [sys.executable, "-c", PROGRAM, target.path(name), statement]
    subprocess.run(arguments, check=False, capture_output=True)  # noqa: S603 - our own program


def _append(thread: Thread, count: int) -> int:
    """Save up to ``count`` times, until one is refused; the number acknowledged."""
    for n in range(count):
        try:
            thread.append(log=[{"n": n, "text": "x" * 200}])
        except HoldfastError:
            return n
    return count


def _after_a_crash(target: Target, name: str) -> int:
    def work(tell: Tell) -> None:
        tell(_append(target.open(name).thread("chat"), SAVES))
        kill(Call("write", name))

    [acknowledged] = Child(work).wait()
    _use(target, name, COUNT)
    return int(acknowledged)


def _while_it_is_open(target: Target, name: str) -> int:
    return _used_meanwhile(target, name, partial(_use, target, name, CHECKPOINT))


def _after_reading_the_file(target: Target, name: str) -> int:
    def read_and_use() -> None:
        # Closing any descriptor of the file drops the locks of the process.
        with open(target.path(name), "rb") as file:
            file.read()
        _use(target, name, COUNT)

    return _used_meanwhile(target, name, read_and_use)


def _used_meanwhile(target: Target, name: str, use: Callable[[], None]) -> int:
    store = target.open(name)
    acknowledged = _append(store.thread("chat"), SAVES)
    use()
    acknowledged += _append(store.thread("chat"), SAVES)
    try:
        store.close()
    except HoldfastError:
        return acknowledged
    return acknowledged
