"""One of the processes that take turns: it does a work for each line it reads.

It runs on an older tree, too, so it uses only what is public and has long been there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count, cycle, islice
from typing import Any

import holdfast
from benchmarks.contest.workload import Writer

Step = Callable[[], object]
HI = {"role": "user", "content": "Please settle these orders."}


def messages(number: int) -> list[dict[str, Any]]:
    writer = Writer(7)
    return [m for _ in range(number // 2) for m in writer.turn()]


def append(store: holdfast.Store, _: str) -> Iterator[Step]:
    thread = store.thread("append")
    thread.save({"messages": messages(1_000)})
    added = messages(2)
    while True:
        yield partial(thread.append, messages=added)


def save(store: holdfast.Store, _: str) -> Iterator[Step]:
    state = {"messages": messages(1_000)}
    for number in count():
        thread = store.thread(f"save {number}")
        yield partial(thread.save, state)


def small_save(store: holdfast.Store, _: str) -> Iterator[Step]:
    thread = store.thread("small")
    for number in count():
        yield partial(thread.save, {"step": number, "plan": "as before"})


def load(store: holdfast.Store, _: str) -> Iterator[Step]:
    thread = store.thread("load")
    thread.save({"messages": messages(1_000)})
    while True:
        yield thread.load


def first_load(store: holdfast.Store, place: str) -> Iterator[Step]:
    store.thread("first").save({"messages": messages(1_000)})

    def step() -> None:
        with opened(place, "first_load") as other:
            other.thread("first").load()

    while True:
        yield step


def record(store: holdfast.Store, _: str) -> Iterator[Step]:
    thread = store.thread("record")
    thread.save({"n": 0})
    for number in count():
        yield partial(thread.record, f"entry {number}", {"n": number})


@holdfast.once(key=["order"])
def settle(order: int) -> str:
    """A tool that costs nothing itself."""
    return f"settled {order}"


def asking(*orders: int) -> dict[str, Any]:
    """A reply of a model that asks for a call for each order."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call-{order}",
                "type": "function",
                "function": {
                    "name": "settle",
                    "arguments": json.dumps({"order": order}),
                },
            }
            for order in orders
        ],
    }


def call(store: holdfast.Store, _: str) -> Iterator[Step]:
    for number in count():
        run = store.conversations.recorder(f"call {number}", tools=[settle])
        run.add(HI)
        run.llm_response(asking(1))
        yield partial(run.call, "call-1")


def recorded_turn(store: holdfast.Store, _: str) -> Iterator[Step]:
    run = store.conversations.recorder("turns", tools=[settle])
    orders = count()

    def step() -> None:
        run.add(HI)
        run.iteration()
        run.llm_response(asking(*islice(orders, 2)))
        for asked in run.open_calls:
            run.tool_result(asked, run.call(asked))
        run.llm_response({"role": "assistant", "content": "Both are settled."})

    while True:
        yield step


def search(store: holdfast.Store, _: str) -> Iterator[Step]:
    for number in range(200):
        store.thread(f"found {number}").save({"messages": messages(10)})
    words = cycle(["order", "invoice", messages(2)[0]["content"].split()[0]])
    while True:
        yield lambda: store.search(next(words))


def append_in_threads(store: holdfast.Store, _: str) -> Iterator[Step]:
    """Sixteen threads of the program, each with a thread of its own to append to."""
    threads = [store.thread(f"beside {number}") for number in range(16)]
    pool = ThreadPoolExecutor(len(threads))
    added = messages(2)

    def appended(thread: holdfast.Thread) -> None:
        for _ in range(4):
            thread.append(messages=added)

    while True:
        yield lambda: list(pool.map(appended, threads))


Works = dict[str, tuple[int, Callable[[holdfast.Store, str], Iterator[Step]]]]
ON_FILES: Works = {
    "append": (20, append),
    "save of 1,000 messages": (4, save),
    "small save": (20, small_save),
    "load": (10, load),
    "first load": (4, first_load),
    "record": (20, record),
    "call made once": (5, call),
    "recorded turn with two calls": (5, recorded_turn),
    "search": (5, search),
}
ON_POSTGRES: Works = {
    "append": (5, append),
    "save of 1,000 messages": (2, save),
    "small save": (5, small_save),
    "load": (5, load),
    "first load": (2, first_load),
    "record": (5, record),
    "search": (5, search),
    "appends in 16 threads": (1, append_in_threads),
}


def opened(place: str, name: str) -> holdfast.Store:
    """The store of a work: a file in a folder, or a schema of a database."""
    if place.startswith("postgresql:"):
        return holdfast.open(place, schema=name, durability="normal")
    return holdfast.open(os.path.join(place, f"{name}.db"), durability="normal")


def main(place: str) -> None:
    """Print for each work that is asked for the seconds passed, and those worked."""
    steps: dict[str, Iterator[Step]] = {}
    works = ON_FILES if os.path.isabs(place) else ON_POSTGRES
    for work in map(str.strip, sys.stdin):
        size, make = works[work]
        if work not in steps:
            steps[work] = make(opened(place, make.__name__), place)
            for step in islice(steps[work], 5):
                step()
        block = list(islice(steps[work], size))
        passed, worked = time.perf_counter(), time.process_time()
        for step in block:
            step()
        worked = time.process_time() - worked
        print(time.perf_counter() - passed, worked, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
