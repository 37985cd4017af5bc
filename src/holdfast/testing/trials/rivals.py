"""Many processes on one store: no save is lost, and every version has one winner."""

from __future__ import annotations

import random
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from holdfast import Checkpoint, Conflict, HoldfastError, Store, Thread
from holdfast.testing.trials.children import Child, Gate, Tell
from holdfast.testing.trials.scenario import problems_of
from holdfast.testing.trials.task import Target, Task, Trials

PROCESSES = 16
WRITERS = 4
# How many operations each of them makes in a round.
EACH = 60
STORE = "shared"
PATIENCE = 60.0


def increment(store: Store, rank: int, count: int) -> object:  # noqa: ARG001 - as all tasks
    """Count up by compare-and-swap until this process has won so often.

    Every process begins by creating the thread, so all but one get a conflict.
    """
    thread = store.thread("counter")
    conflicts = wins = value = 0
    head: Checkpoint | None = None
    while wins < count:
        try:
            thread.save({"value": value + 1}, expect=head)
            wins += 1
        except Conflict as lost:
            conflicts += 1
            newer = lost.found is not None and lost.found.seq > (
                head.seq if head else 0
            )
            if lost.code != "head_moved" or not newer:
                raise
        head = thread.head
        value = store.load(head)["value"] if head else 0
    return conflicts


def is_one_line(thread: Thread) -> bool:
    """True if the history is a chain of parents with steps 1, 2, 3 ..."""
    line = thread.history(None, order="oldest")
    parents = [None, *(checkpoint.id for checkpoint in line)][:-1]
    return [c.step for c in line] == list(range(1, len(line) + 1)) and [
        c.parent for c in line
    ] == parents


def _counting(target: Target, rank: int, count: int, gate: Gate, tell: Tell) -> None:
    """In a child: be ready, wait for the others, count up."""
    with target.open(STORE, busy_timeout=PATIENCE) as store:
        gate.wait()
        try:
            tell(increment(store, rank, count))
        except HoldfastError as error:
            tell(repr(error))


def compare_and_swap(task: Task) -> Trials:
    """Processes count up one number together, each its share of the trials."""
    each = -(-task.count // PROCESSES)
    task.target.open(STORE).close()
    gate = Gate(PROCESSES)
    works = (partial(_counting, task.target, n, each, gate) for n in range(PROCESSES))
    children = [Child(work) for work in works]
    gate.open()
    reports = [child.wait() for child in children]
    wrong = [f"a process ended with {told}" for told in reports if not _won(told)]
    conflicts = sum(told[0] for told in reports if _won(told))
    total = each * PROCESSES
    with task.target.open(STORE, cache_size=0) as store:
        wrong += _miscounted(store, total)
    if conflicts == 0:
        wrong.append("no two processes ever wanted the same version")
    return Trials(total, wrong, f"{conflicts:,} conflicts told")


def _won(told: list[object]) -> bool:
    return len(told) == 1 and isinstance(told[0], int)


def _miscounted(store: Store, total: int) -> Iterator[str]:
    thread = store.thread("counter")
    value = thread.load()["value"] if thread.head else 0
    if value != total:
        yield from [f"{total} wins acknowledged, {value} counted"] * abs(total - value)
    if not is_one_line(thread):
        yield "the history is not one line"
    yield from problems_of(store)


# --- the history ----------------------------------------------------------------------


class Operation(NamedTuple):
    """An append or a read as its process saw it; ``end`` is 0 if it never ended.

    ``length`` and ``digest`` are those of the list that was read.
    """

    name: str
    begin: int
    end: int
    length: int = 0
    digest: int = 0

    @property
    def is_read(self) -> bool:
        return not self.name


def _writing(target: Target, name: str, count: int, seed: int, tell: Tell) -> None:
    """In a child: append and read, and tell of each before and after."""
    chance = random.Random(f"{name} {seed}")  # noqa: S311 - repeatable trials
    with target.open(STORE, busy_timeout=PATIENCE) as store:
        thread = store.thread("log")
        for n in range(count):
            item = f"{name}.{n}" if chance.random() < 0.5 else ""  # noqa: PLR2004 - half of them
            begin = time.monotonic_ns()
            tell([item, begin, 0])
            seen: list[str] = []
            if item:
                thread.append(log=[item])
            elif thread.head is not None:
                seen = thread.load()["log"]
            tell([item, begin, time.monotonic_ns(), len(seen), digest_of(seen)])


def digest_of(items: list[str]) -> int:
    return zlib.crc32(" ".join(items).encode())


def history(task: Task) -> Trials:
    """Processes append to one list and read it, and some of them are killed."""
    task.target.open(STORE).close()
    done: list[Operation] = []
    number = 0
    while sum(1 for o in done if o.end) < task.count:
        seed = task.chance.randrange(1 << 30)
        names = [f"{number}.{n}" for n in range(WRITERS)]
        works = (partial(_writing, task.target, n, EACH, seed) for n in names)
        more = _with_a_victim([Child(work) for work in works], task.chance)
        if not any(operation.end for operation in more):
            return Trials(len(done), ["no operation of a whole round ended"])
        done += more
        number += 1
        task.done(sum(1 for o in done if o.end))
    with task.target.open(STORE, cache_size=0) as store:
        wrong = list(contradictions(done, *_found(store)))
        wrong += problems_of(store)
    return Trials(sum(1 for o in done if o.end), wrong)


def _with_a_victim(children: list[Child], chance: random.Random) -> list[Operation]:
    """Kill one of the children on the way; the operations that all reported."""
    victim = chance.choice(children)
    told = [victim.report() for _ in range(chance.randrange(1, 100))]
    victim.kill()
    for child in children:
        told += child.wait()
    # The second report of an operation takes the place of the first.
    found = {(r[0], r[1]): Operation(*r) for r in told if r is not None}
    return list(found.values())


def _found(store: Store) -> tuple[list[str], list[int]]:
    thread = store.thread("log")
    line = thread.history(None, order="oldest")
    return (thread.load()["log"] if thread.head else []), [c.step for c in line]


def contradictions(
    done: list[Operation], log: list[str], steps: list[int]
) -> Iterator[str]:
    """The observations that no serial order of the operations explains."""
    at = {item: n for n, item in enumerate(log, 1)}
    if len(at) != len(log):
        yield f"{len(log) - len(at)} items are there twice"
    if steps != list(range(1, len(log) + 1)):
        yield "the steps of the thread have a gap"
    appended = [o for o in done if not o.is_read and o.end]
    yield from (f"{o.name} is lost" for o in appended if o.name not in at)
    yield from _stale(done, lambda o: o.length if o.is_read else at.get(o.name, 0))
    for read in (o for o in done if o.is_read and o.end):
        if digest_of(log[: read.length]) != read.digest:
            yield f"a read of {read.length} items is no beginning of the list"


def _stale(done: list[Operation], length: Callable[[Operation], int]) -> Iterator[str]:
    """The operations that did not see all that had ended before they began."""
    ended = sorted((o for o in done if o.end), key=lambda o: o.end)
    newest, next_end = 0, 0
    for operation in sorted(ended, key=lambda o: o.begin):
        while ended[next_end].end < operation.begin:
            newest = max(newest, length(ended[next_end]))
            next_end += 1
        if length(operation) < newest + (not operation.is_read):
            what = operation.name or "a read"
            yield f"{what} came to {length(operation)}, after {newest} were there"
