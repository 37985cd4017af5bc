"""A signal reaches a save while it waits; all processes can save afterwards.

usage: interrupt_save.py CASE PATH [SIGNAL]

SIGINT raises KeyboardInterrupt, SIGTERM the SystemExit of a handler that says so.

One line of JSON: how the interrupted save ended, and who could save afterwards.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import apsw

import holdfast
from holdfast import HoldfastError, Store
from inner.sqlite import page_checksums
from support.children import report
from support.interrupts import MAIN, Interrupt

PATIENCE = 60.0


def is_held(path: str) -> bool:
    """Whether a process has a lock file locked."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def until(condition: Callable[[], bool]) -> None:
    while not condition():
        os.sched_yield()


def chosen() -> signal.Signals:
    return signal.Signals[sys.argv[3]]


def interrupt() -> None:
    assert MAIN.ident is not None
    signal.pthread_kill(MAIN.ident, chosen())


def locked(path: str) -> apsw.Connection:
    """A connection that keeps all others from writing."""
    rival = apsw.Connection(path, vfs=page_checksums())
    rival.execute("begin immediate")
    return rival


def save(store: Store) -> str:
    try:
        store.thread("main").append(log=[0])
    except (KeyboardInterrupt, SystemExit):
        return "interrupted"
    return "saved"


def waiting_for_a_thread(store: Store, path: str) -> str:
    """Another thread commits, and this one waits for it to commit for both."""
    rival = locked(path)
    append = store.thread("leader").append
    leader = threading.Thread(target=append, kwargs={"log": [0]})
    leader.start()
    until(lambda: is_held(f"{path}-lock"))
    Interrupt("append", chosen()).start()
    outcome = save(store)
    rival.execute("rollback")
    leader.join()
    return outcome


def waiting_for_the_database(store: Store, path: str) -> str:
    """Another process holds SQLite's lock, and gives it up after the interrupt."""
    rival = locked(path)

    def release() -> None:
        until(lambda: is_held(f"{path}-lock"))
        interrupt()
        rival.execute("rollback")

    releasing = threading.Thread(target=release)
    releasing.start()
    outcome = save(store)
    releasing.join()
    return outcome


def waiting_for_its_turn(store: Store, path: str) -> str:
    """Another process is ahead in the queue, and leaves it after the interrupt."""
    ahead = os.open(f"{path}-lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(ahead, fcntl.LOCK_EX)
    Interrupt("append", chosen()).start()
    outcome = save(store)
    os.close(ahead)
    return outcome


def next_save(store: Store, name: str) -> str:
    try:
        store.thread(name).append(log=[0])
    except HoldfastError as error:
        return repr(error)
    return "saved"


def in_another_process(path: str) -> str:
    program = [sys.executable, __file__, "save", path]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout


def main(case: str, path: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
    with holdfast.open(path, busy_timeout=PATIENCE) as store:
        if case == "save":
            sys.stdout.write(next_save(store, "other process"))
            return
        outcome = CASES[case](store, path)
        other = in_another_process(path)
        same = next_save(store, "same process")
    report({"outcome": outcome, "other": other, "same": same})


CASES = {
    case.__name__: case
    for case in (waiting_for_a_thread, waiting_for_the_database, waiting_for_its_turn)
}

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
