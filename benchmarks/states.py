"""What saving and loading a whole state of a thousand messages cost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from itertools import islice
from statistics import median
from typing import Any

import apsw
import orjson

import holdfast
from benchmarks.contest.stores.langgraph import sqlite_saver
from benchmarks.contest.workload import Message, growing
from benchmarks.measure import (
    DURABILITIES,
    Bench,
    Durability,
    Pair,
    alternate,
    timed,
    worked,
)
from benchmarks.peers import plain_database, settings
from benchmarks.report import Row, failed, times
from holdfast.operations.values import codec

STATE = 1000


def save(bench: Bench) -> None:
    """Saving a whole state of which two messages are new."""
    _save_against_floor(bench)
    for durability in reversed(DURABILITIES):
        for plain in (False, True):
            _save_against_langgraph(bench, durability, plain=plain)


def _save_against_floor(bench: Bench) -> None:
    """A save against what it cannot do without, measured in turns with it."""
    with bench.place() as folder, open(os.path.join(folder, "floor"), "wb") as file:

        def floor() -> None:
            codec.encode(state)  # and look at the types of all of it
            os.write(file.fileno(), bytes(4096))  # the file grows, as a log does
            os.fdatasync(file.fileno())

        with holdfast.open(os.path.join(folder, "h.db")) as store:
            thread, pair = store.thread("chat"), Pair([], [])
            for state in _states(bench.amount(100, 20) + 1):
                pair.ours.append(timed(partial(thread.save, {"messages": state})))
                pair.reference.append(timed(floor))
    pair = Pair(pair.ours[1:], pair.reference[1:])  # the first save writes all of it
    a, b = pair.medians
    work = f"save of {STATE:,} messages against encoding, types and one fsync, full"
    bench.rows.append(Row(work, pair.text("floor"), a / b, 1.5))


def _save_against_langgraph(
    bench: Bench, durability: Durability, *, plain: bool
) -> None:
    kind = "plain dicts" if plain else "message objects"
    work = f"save of {STATE:,} messages against SqliteSaver.put ({kind}), {durability}"
    with bench.place() as folder:
        try:
            put = LangGraphPut(os.path.join(folder, "l.db"), durability, plain=plain)
        except ImportError as error:
            bench.rows.append(failed(work, str(error)))
            return
        with holdfast.open(
            os.path.join(folder, "h.db"), durability=durability
        ) as store:
            pair = _take_turns(store.thread("chat"), put, bench.amount(100, 20))
        how = settings(put.connection)
        put.connection.close()
    ours, theirs = pair.medians
    measured = pair.text(f"put ({how})")
    bench.rows.append(Row(work, measured, theirs / ours))


def _take_turns(thread: holdfast.Thread, put: LangGraphPut, rounds: int) -> Pair:
    states = _states(rounds + 1)
    first = next(states)
    thread.save({"messages": first})
    put(put.value(first))
    pair = Pair([], [])
    for state in states:
        value = put.value(state)
        pair.ours.append(timed(partial(thread.save, {"messages": state})))
        pair.reference.append(timed(partial(put, value)))
    return pair


def _states(number: int) -> Iterator[list[Message]]:
    for turn in islice(growing(STATE // 2 + number), STATE // 2, None):
        yield turn.messages


class LangGraphPut:
    """Puts states as a graph's checkpoints: what `MessagesState` holds are objects."""

    def __init__(self, path: str, durability: Durability, *, plain: bool) -> None:
        base = import_module("langgraph.checkpoint.base")
        self._empty = base.empty_checkpoint
        self._objects = import_module("langchain_core.messages").convert_to_messages
        self.connection, self._saver = sqlite_saver(path, durability)
        self._config = {"configurable": {"thread_id": "chat", "checkpoint_ns": ""}}
        self._plain = plain
        self._known: list[Any] = []

    def value(self, state: list[Message]) -> list[Any]:
        """What the channel holds; only new messages have to be converted."""
        if self._plain:
            return state
        self._known = self._known + self._objects(state[len(self._known) :])
        return self._known

    def __call__(self, value: list[Any]) -> None:
        versions = {"messages": len(value)}
        checkpoint = self._empty()
        checkpoint["channel_values"] = {"messages": value}
        checkpoint["channel_versions"] = versions
        metadata = {"source": "loop", "step": len(value)}
        self._config = self._saver.put(self._config, checkpoint, metadata, versions)


# --- load -----------------------------------------------------------------------------


def load(bench: Bench) -> None:
    """Loading a state against reading it as one blob."""
    with bench.place() as folder:
        ours = os.path.join(folder, "h.db")
        blob = os.path.join(folder, "b.db")
        state = _write_both(ours, blob)
        _load_warm(bench, ours, blob, state)
        _load_cold(bench, ours, blob)


def _write_both(ours: str, blob: str) -> dict[str, list[Message]]:
    with holdfast.open(ours, durability="normal") as store:
        thread = store.thread("chat")
        for turn in growing(STATE // 2):
            thread.append(messages=turn.added)
    state = {"messages": turn.messages}
    db = plain_database(blob, "NORMAL")
    db.execute("create table state (n integer primary key, data blob)")
    db.execute("insert into state values (1, ?)", (orjson.dumps(state),))
    db.close()
    return state


def _load_warm(
    bench: Bench, ours: str, blob: str, state: dict[str, list[Message]]
) -> None:
    store, db = holdfast.open(ours), apsw.Connection(blob)
    thread = store.thread("chat")
    assert thread.load() == state == _read_blob(db)
    a, b = alternate(
        thread.load,
        lambda: _read_blob(db),
        rounds=bench.amount(100, 30),
        block=5,
    ).medians
    db.close()
    store.close()
    work = f"load of {STATE:,} messages against one blob, on an open store"
    bench.rows.append(Row(work, times(a, b, "blob"), a / b, 1.3))


def _load_cold(bench: Bench, ours: str, blob: str) -> None:
    """The first load, without and with opening the store, in processor time."""

    def through_store() -> tuple[float, float]:
        opened: list[holdfast.Store] = []
        opening = worked(lambda: opened.append(holdfast.open(ours)))
        with opened[0] as store:
            reading = worked(store.thread("chat").load)
        return reading, opening + reading

    def through_blob() -> tuple[float, float]:
        opened: list[apsw.Connection] = []
        opening = worked(lambda: opened.append(apsw.Connection(blob)))
        reading = worked(lambda: _read_blob(opened[0]))
        opened[0].close()
        return reading, opening + reading

    rounds = bench.amount(60, 20)
    pairs = [(through_store(), through_blob()) for _ in range(rounds)]
    for index, what in enumerate(("first load", "open and first load")):
        a = median(pair[0][index] for pair in pairs)
        b = median(pair[1][index] for pair in pairs)
        work = f"{what} of {STATE:,} messages against one blob, cold, processor"
        limit = 1.3 if not index else None
        bench.rows.append(Row(work, times(a, b, "blob"), a / b, limit))


def _read_blob(db: apsw.Connection) -> Any:
    [(data,)] = db.execute("select data from state where n = 1").fetchall()
    assert isinstance(data, bytes)
    return orjson.loads(data)
