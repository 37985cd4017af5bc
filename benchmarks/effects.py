"""What a tool call made once costs, and finding an effect that a rewind left behind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import holdfast
from benchmarks.inner.engine import declaration_of
from benchmarks.measure import DURABILITIES, Bench, Durability, Pair, alternate
from benchmarks.report import Row, times
from holdfast.backends import NEW_THREAD
from holdfast.operations.effects import calls
from holdfast.operations.transcripts import TranscriptCall
from holdfast.recorder import Recorder

HI = {"role": "user", "content": "Please settle these orders."}
FEW = 10
NEW = 1_000_000  # the first order that was never settled


@holdfast.once(key=["order"])
def settle(order: int, ref: str) -> str:
    """A tool that costs nothing itself."""
    return f"settled {order}, {ref}"


def effects(bench: Bench) -> None:
    """A call made once against two entries, and the look-up among many effects."""
    for durability in DURABILITIES:
        _once(bench, durability)
    _look_up(bench)
    _resume(bench)


def asking(orders: range, ref: str) -> dict[str, Any]:
    """A reply of a model that asks for a call for each order."""
    functions = [
        {"name": "settle", "arguments": json.dumps({"order": order, "ref": ref})}
        for order in orders
    ]
    asked = [
        {"id": f"{ref}-{order}", "type": "function", "function": function}
        for order, function in zip(orders, functions, strict=True)
    ]
    return {"role": "assistant", "content": None, "tool_calls": asked}


# --- a call made once -----------------------------------------------------------------


def _once(bench: Bench, durability: Durability) -> None:
    rounds = bench.amount(300, 60)
    with bench.place() as folder:
        store = holdfast.open(os.path.join(folder, "a.db"), durability=durability)
        runs = iter([_asked(store, number) for number in range(rounds)])
        bare = store.thread("bare")
        bare.save({"n": 0})
        numbers = count()

        def two_entries() -> None:
            number = next(numbers)
            begun = {"id": f"call-{number}", "name": "settle", "given": {"order": 1}}
            bare.record(f"{number} begins", begun)
            bare.record(f"{number} ends", {"result": "settled 1, a"})

        pair = alternate(_calls(runs), two_entries, rounds=rounds)
        store.close()
    work = f"a call made once against two bare journal entries, {durability}"
    a, b = pair.medians
    bench.rows.append(Row(work, pair.text("two entries"), a / b, 1.5))


def _asked(store: holdfast.Store, number: int) -> Recorder:
    """A recorder whose model has asked for a call."""
    run = store.conversations.recorder(f"chat {number}", tools=[settle])
    run.add(HI)
    run.save()
    run.llm_response(asking(range(1), "a"))
    return run


def _calls(runs: Iterator[Recorder]) -> Callable[[], object]:
    def call() -> object:
        return next(runs).call("a-0")

    return call


# --- effects left behind --------------------------------------------------------------


def _look_up(bench: Bench) -> None:
    many = bench.amount(100_000, 10_000)
    with bench.place() as folder:
        large = holdfast.open(os.path.join(folder, "l.db"), durability="normal")
        small = holdfast.open(os.path.join(folder, "s.db"), durability="normal")
        _leave_behind(large, many)
        _leave_behind(small, FEW)
        for what, first in (("is taken over", 0), ("is not among them", NEW)):
            forks = (f"fork {first} {number}" for number in count())
            pair = Pair([], [])
            for _ in range(bench.amount(8, 5)):
                name = next(forks)
                ours, reference = (_branch(s, name, first) for s in (large, small))
                ten = alternate(ours, reference, rounds=FEW)
                pair.ours.extend(ten.ours)
                pair.reference.extend(ten.reference)
            a, b = pair.medians
            work = f"a call whose effect {what}: {many:,} left behind against {FEW}"
            bench.rows.append(Row(work, times(a, b, f"of {FEW}"), a / b, 1.2))
        large.close()
        small.close()


def _leave_behind(store: holdfast.Store, number: int) -> None:
    """A conversation with effects that stand behind its checkpoint ``start``."""
    run = store.conversations.recorder("chat")
    run.add(HI)
    run.save(label="start")
    run.add(HI)
    saved = run.save()
    tool = declaration_of(settle)
    for order in range(number):
        arguments: dict[str, Any] = {"order": order, "ref": "a"}
        made = calls.JournaledCall(
            thread=saved.thread,
            start=NEW_THREAD,
            key=f"0:a-{order}",
            call=TranscriptCall(f"a-{order}", "settle", arguments),
            identity=tool.identity("settle", arguments),
            anchor=saved.id,
        )
        store.runner.save(calls.begin, made, calls.Permission(1))
        store.runner.save(calls.complete, made, 1, settle(**arguments))


def _branch(store: holdfast.Store, name: str, first: int) -> Callable[[], object]:
    """Makes one call after the other in a fork that begins before all effects."""
    store.conversations.thread("chat").fork(f"conversation:{name}", at="label:start")
    run = store.conversations.recorder(name, tools=[settle])
    run.llm_response(asking(range(first, first + FEW), "b"))
    left = iter(run.open_calls)
    return lambda: run.call(next(left))


def _resume(bench: Bench) -> None:
    """A recorder that tells its model what was left behind reads all of it, once."""
    few = bench.amount(2_000, 500)
    many = 10 * few
    with bench.place() as folder:
        large = holdfast.open(os.path.join(folder, "l.db"), durability="normal")
        small = holdfast.open(os.path.join(folder, "s.db"), durability="normal")
        for store, number in ((large, many), (small, few)):
            _leave_behind(store, number)
            store.conversations.thread("chat").rewind("label:start")
        a, b = alternate(
            lambda: large.conversations.recorder("chat"),
            lambda: small.conversations.recorder("chat"),
            rounds=10,
        ).medians
        large.close()
        small.close()
    work = f"resuming after a rewind: {many:,} effects left behind against {few:,}"
    bench.rows.append(Row(work, times(a, b, f"of {few:,}"), a / b, 12))
