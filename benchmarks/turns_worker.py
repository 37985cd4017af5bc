"""One of the processes that take turns: it does a work for each line it reads.

It runs on an older tree, too, so it uses only what is public and has long been there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
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


def first_load(store: holdfast.Store, path: str) -> Iterator[Step]:
    store.thread("first").save({"messages": messages(1_000)})

    def step() -> None:
        with holdfast.open(path, durability="normal") as other:
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


WORKS: dict[str, tuple[int, Callable[[holdfast.Store, str], Iterator[Step]]]] = {
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


def main(folder: str) -> None:
    steps: dict[str, Iterator[Step]] = {}
    for work in map(str.strip, sys.stdin):
        size, make = WORKS[work]
        if work not in steps:
            path = os.path.join(folder, f"{make.__name__}.db")
            steps[work] = make(holdfast.open(path, durability="normal"), path)
            next(steps[work])()
        block = list(islice(steps[work], size))
        start = time.process_time()
        for step in block:
            step()
        print(time.process_time() - start, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
