"""Several processes at once on one store, each doing its part of a task.

usage: parallel_tasks.py TASK STORE PROCESSES [ARGUMENT [DOOR]]

All begin at the same moment. One line of JSON for each process: what it reports.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import holdfast
from holdfast import Event, HoldfastError, Retention, Store
from holdfast.selftest._rivals import increment
from support.children import Child, Gate, report
from support.stores import opened

TRIM_SECONDS = 0.01
Task = Callable[[Store, int, int], object]


def append(store: Store, rank: int, count: int) -> object:
    """Append to the one thread that all append to."""
    thread = store.thread("shared")
    return [
        thread.append(log=[{"process": rank, "n": n, "text": "x" * 100}]).step
        for n in range(count)
    ]


def crowd(store: Store, rank: int, count: int) -> object:
    """Four threads of this process append, to threads of their own and to one."""

    def work(number: int) -> None:
        own, shared = store.thread(f"own {rank}.{number}"), store.thread("shared")
        for n in range(count):
            own.append(log=[n])
            shared.append(log=[{"process": f"{rank}.{number}", "n": n}])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    return count


def back_up(store: Store, rank: int, count: int) -> object:
    """The first process makes backups until the others have written everything."""
    if rank > 0:
        return append(store, rank, count)
    writers = int(sys.argv[3]) - 1
    path = sys.argv[2].removeprefix("dir:")
    copies: list[str] = []
    while True:
        finished = _appended(store) == writers * count
        copies.append(f"{path}.{len(copies)}")
        store.backup(copies[-1])
        if finished:
            return copies


def prune(store: Store, rank: int, count: int) -> object:
    """The first two processes prune until the others have written everything."""
    if rank > 1:
        return _write_labelled(store, rank, count)
    writers = int(sys.argv[3]) - 2
    removed = 0
    while True:
        finished = _appended(store) == writers * count
        removed += store.prune(Retention(last=3)).checkpoints
        if finished:
            return removed


def _write_labelled(store: Store, rank: int, count: int) -> object:
    shared, own = store.thread("shared"), store.thread(f"own {rank}")
    for n in range(count):
        entry = {"process": rank, "n": n, "text": "x" * 400}
        label = f"{rank}:{n}" if n % 10 == 0 else None
        shared.extend({"log": [entry]}, label=label)
        own.extend({"log": [entry]}, label=label)
        if n % 25 == 24:
            own.rewind("@~1")
            own.fork(f"fork {rank}:{n}")
            own.append(log=[entry])
    return count


def prune_once(store: Store, rank: int, _: int) -> object:
    """All prune the same store at once."""
    return store.prune(Retention(last=2)).checkpoints


def watch(store: Store, rank: int, count: int) -> object:
    """The first process writes a list and its length; the others read both."""
    thread = store.thread("watched")
    if rank == 0:
        for n in range(1, count + 1):
            items = [{"item": i, "text": "x" * 40} for i in range(n)]
            thread.save({"items": items, "count": n})
        return []
    seen = [0]
    while seen[-1] < count:
        if thread.head is None:
            continue
        state = thread.load()
        assert len(state["items"]) == state["count"], state["count"]
        history = [c.step for c in thread.history(5)]
        assert history == sorted(history, reverse=True)
        assert history[0] >= state["count"]
        if state["count"] != seen[-1]:
            seen.append(state["count"])
    return seen


def _appended(store: Store) -> int:
    thread = store.thread("shared")
    return len(thread.load()["log"]) if thread.head else 0


def replicate(store: Store, rank: int, count: int) -> object:
    """Append events, some of which others append too, and follow them all."""
    stream = store.stream("log")
    wanted = (int(sys.argv[3]) + 1) * count
    seen: list[tuple[str, str]] = []
    for n in range(count):
        for key in (f"{rank}:{n}", f"all:{n}"):
            stream.append({"key": key, "text": "x" * 100}, key=key)
        seen += _read_on(stream.events, seen)
    while len(seen) < wanted and (found := _read_on(stream.wait, seen)):
        seen += found
    return seen


def _read_on(
    read: Callable[[str | None], list[Event]], seen: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    found = read(seen[-1][0] if seen else None)
    return [(event.cursor, event.value["key"]) for event in found]


def trim(store: Store, rank: int, count: int) -> object:
    """The first process trims until the others have appended everything.

    Between two trims it leaves them time: without a pause, the processor decides
    whether they get on beside it.
    """
    stream = store.stream("log")
    if rank > 0:
        return [stream.append({"n": n}, key=f"{rank}:{n}") for n in range(count)]
    total = (int(sys.argv[3]) - 1) * count
    removed = 0
    while removed < total - 5:
        time.sleep(TRIM_SECONDS)
        removed += stream.trim(last=5)
    return removed


def reopen(store: Store, rank: int, count: int) -> object:
    """Open, write or read, and close, again and again; the file grows meanwhile."""
    store.close()
    options = {"read_only": rank % 2 == 0, "busy_timeout": 60}
    for n in range(count):
        with holdfast.open(sys.argv[2], **options) as again:
            if rank % 2:
                again.thread(f"own {rank}").append(log=[{"n": n, "text": "x" * 9000}])
            else:
                again.threads()
    return count


TASKS: dict[str, Task] = {
    task.__name__: task
    for task in (
        append,
        crowd,
        increment,
        back_up,
        replicate,
        trim,
        prune,
        prune_once,
        watch,
        reopen,
    )
}


def run(task: Task, place: tuple[str, str], rank: int, argument: int, gate: Gate, tell):
    """In a child: be ready, wait for the others, do the part, report."""
    with opened(*place, busy_timeout=60) as store:
        gate.wait()
        tell({"rank": rank, "result": task(store, rank, argument)})


def open_first(path: str, rank: int, gates: list[Gate], tell) -> None:
    """In a child: open file after file at the same moment as all others."""
    errors: list[str] = []
    for number, gate in enumerate(gates):
        gate.wait()
        try:
            with holdfast.open(f"{path}.{number}", busy_timeout=60) as store:
                store.thread(f"own {rank}").save({"rank": rank})
        except HoldfastError as error:
            errors.append(repr(error))
    tell({"rank": rank, "result": errors})


def main(
    name: str, path: str, processes: int, argument: int, door: str = "blocking"
) -> None:
    if name == "first_open":
        gates = [Gate(processes) for _ in range(argument)]
        works = [partial(open_first, path, rank, gates) for rank in range(processes)]
    else:
        gates = [Gate(processes)]
        works = [
            partial(run, TASKS[name], (door, path), rank, argument, gates[0])
            for rank in range(processes)
        ]
    children = [Child(work) for work in works]
    for gate in gates:
        gate.open()
    for child in children:
        [result] = child.wait() or [{"error": f"ended with status {child.status}"}]
        report(result)


if __name__ == "__main__":
    given = [*sys.argv[4:], "0"] if len(sys.argv) == 4 else sys.argv[4:]
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(given[0]), *given[1:])
