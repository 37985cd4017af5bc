"""The same LangGraph graph on Holdfast's saver and on LangGraph's own: size, time of a
turn and of a put, loading."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

import holdfast
from benchmarks.contest.stores.langgraph import delta_state, sqlite_saver
from benchmarks.contest.units import duration, volume
from benchmarks.contest.workload import ASSISTANT_SIZE, USER_SIZE, Writer
from benchmarks.measure import Bench, disk_size, timed, worked
from benchmarks.report import Row, times
from holdfast.adapters.langgraph import HoldfastSaver

TURNS = 500
# So many turns at the end are compared with the first turns of other threads.
EDGE = 20
CHAT = "chat"

# A saver, and the object and the method of it that encode what is put.
Opened = tuple[Any, tuple[Any, str]]


@dataclass
class Measured:
    """What a saver took; times in seconds, those of puts with and without encoding."""

    size: int = 0
    load: float = 0.0
    turns: list[float] = field(default_factory=list)
    first: list[tuple[float, float]] = field(default_factory=list)
    last: list[tuple[float, float]] = field(default_factory=list)


def langgraph(bench: Bench) -> None:
    """An unmodified graph with each saver, every turn durable."""
    turns = bench.amount(TURNS, 60)
    packed = _measure(bench, partial(_ours, compress=True), turns)
    plain = _measure(bench, partial(_ours, compress=False), turns)
    theirs = _measure(bench, _theirs, turns)
    # 3 MB where the peer takes 713.
    goal = None if bench.quick else 237.0
    for name, ours, limit in (("", packed, goal), (", uncompressed", plain, None)):
        work = f"LangGraph, {turns}-turn graph: SqliteSaver's file against ours{name}"
        sizes = f"{volume(theirs.size)}; HoldfastSaver {volume(ours.size)}"
        ratio = theirs.size / ours.size
        bench.rows.append(Row(work, sizes, ratio, limit, "at least"))
    _against_deltas(bench, turns, packed)
    _times(bench, turns, packed, theirs)


def _against_deltas(bench: Bench, turns: int, ours: Measured) -> None:
    """What LangGraph offers against large files, which changes the graph."""
    with bench.place() as folder:
        path = os.path.join(folder, "chat.db")
        with _theirs(path) as (saver, _):
            talk = Talk(saver, delta_state())
            for _ in range(turns):
                talk.turn(CHAT)
        size = disk_size(path)
    work = f"LangGraph, {turns}-turn graph: SqliteSaver's file with delta channels"
    sizes = f"{volume(size)}; HoldfastSaver without {volume(ours.size)}"
    limit = None if bench.quick else 3.0
    bench.rows.append(Row(work, sizes, size / ours.size, limit, "at least"))


def _times(bench: Bench, turns: int, ours: Measured, theirs: Measured) -> None:
    pairs = {
        f"turn {turns}": (median(ours.turns), median(theirs.turns)),
        "load": (ours.load, theirs.load),
    }
    for what, (one, other) in pairs.items():
        work = f"LangGraph, {turns}-turn graph: {what} against SqliteSaver"
        limit = 1.0 if what == "load" else None
        measured = times(one, other, "SqliteSaver")
        bench.rows.append(Row(work, measured, one / other, limit))
    for name, saver, limit in (("", ours, 1.5), (" with SqliteSaver", theirs, None)):
        first = median(rest for _, rest in saver.first)
        last = median(rest for _, rest in saver.last)
        whole = duration(median(put for put, _ in saver.last))
        work = f"LangGraph: put at turn {turns} against turn 1, less encoding{name}"
        measured = f"{times(last, first, 'turn 1')} (with encoding {whole})"
        bench.rows.append(Row(work, measured, last / first, limit))


# --- a conversation -------------------------------------------------------------------


@contextmanager
def _ours(path: str, *, compress: bool) -> Iterator[Opened]:
    with holdfast.open(path, compress=compress) as store:
        saver = HoldfastSaver(store)
        yield saver, (saver._types, "encode")


@contextmanager
def _theirs(path: str) -> Iterator[Opened]:
    connection, saver = sqlite_saver(path)
    yield saver, (saver.serde, "dumps_typed")
    connection.close()


def _measure(
    bench: Bench, opened: Callable[[str], AbstractContextManager[Opened]], turns: int
) -> Measured:
    measured = Measured()
    with bench.place() as folder:
        path = os.path.join(folder, "chat.db")
        with opened(path) as (saver, _):
            talk = Talk(saver)
            for _ in range(turns):
                talk.turn(CHAT)
        measured.size = disk_size(path)
        measured.load = median(_first_load(opened, path) for _ in range(EDGE))
        with opened(path) as (saver, encoder):
            _compare(measured, Talk(saver), _timed_puts(saver, encoder))
            found = saver.get_tuple(config_of(CHAT)).checkpoint["channel_values"]
            assert len(found["messages"]) == 2 * (turns + 2 * EDGE)
    return measured


def _first_load(
    opened: Callable[[str], AbstractContextManager[Opened]], path: str
) -> float:
    with opened(path) as (saver, _):
        return worked(partial(saver.get_tuple, config_of(CHAT)))


def _compare(measured: Measured, talk: Talk, puts: list[tuple[float, float]]) -> None:
    """More turns of a conversation, in turns with the first ones of others."""
    for number in range(EDGE):
        measured.turns.append(talk.turn(CHAT))
        # Waiting for each put, so that it does not wait for what else goes on.
        puts.clear()
        talk.turn(f"new {number}", durability="sync")
        measured.first += puts
        puts.clear()
        talk.turn(CHAT, durability="sync")
        measured.last += puts


class Talk:
    """A graph of one scripted node, and a user who talks to it."""

    def __init__(self, saver: Any, schema: Any = MessagesState) -> None:
        self._writer = Writer(1)
        builder = StateGraph(schema)
        builder.add_node("model", lambda _: self._answer())
        builder.add_edge(START, "model")
        builder.add_edge("model", END)
        self.app = builder.compile(checkpointer=saver)

    def _answer(self) -> dict[str, Any]:
        return {"messages": [AIMessage(self._writer.text(ASSISTANT_SIZE))]}

    def turn(self, thread: str, **options: Any) -> float:
        """Seconds for one turn."""
        said: Any = {"messages": [HumanMessage(self._writer.text(USER_SIZE))]}
        return timed(partial(self.app.invoke, said, config_of(thread), **options))


def _timed_puts(saver: Any, encoder: tuple[Any, str]) -> list[tuple[float, float]]:
    """The times of all puts from now on, and the same without the encoding."""
    puts: list[tuple[float, float]] = []
    # LangGraph puts in one thread while another keeps what tasks wrote.
    spent = threading.local()
    put, encode = saver.put, getattr(*encoder)

    def timed_encode(*arguments: Any) -> Any:
        start = time.perf_counter()
        result = encode(*arguments)
        spent.time = getattr(spent, "time", 0.0) + time.perf_counter() - start
        return result

    def timed_put(*arguments: Any) -> Any:
        spent.time, start = 0.0, time.perf_counter()
        result = put(*arguments)
        whole = time.perf_counter() - start
        puts.append((whole, whole - spent.time))
        return result

    saver.put = timed_put
    setattr(*encoder, timed_encode)
    return puts


def config_of(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}
