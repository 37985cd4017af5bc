"""PostgreSQL: beside LangGraph's saver and a bare insert over the same driver.

Every measurement is made on a private server with its own settings of durability, from
the newest binaries on the machine; all sides pay for the same ``synchronous_commit``.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import cycle
from statistics import median
from typing import Any

import orjson
import psycopg
from psycopg_pool import AsyncConnectionPool

import holdfast
from benchmarks.contest.stores.langgraph import delta_state
from benchmarks.contest.units import volume
from benchmarks.contest.workload import Message, Turn, Writer, growing, json_size
from benchmarks.measure import (
    DURABILITIES,
    Bench,
    Durability,
    Work,
    alternate,
    percentile,
    timed,
)
from benchmarks.report import Row, Series, failed, times
from benchmarks.server import private_server

TURNS = 500
STATE = 1000
TASKS = 64
MOST_SECONDS = 120
LEVELS = {"full": "on", "normal": "off"}


def postgres(bench: Bench) -> None:
    """Everything there is to measure on a server."""
    with private_server() as url:
        for durability in reversed(DURABILITIES):
            _append(bench, url, durability)
        _load(bench, url)
        _tasks(bench, url)
        _trips(bench, url)
        _sizes(bench, url)


def _connect(url: str, durability: Durability = "full") -> psycopg.Connection[Any]:
    level = LEVELS[durability]
    bare = psycopg.connect(
        url, autocommit=True, options=f"-c synchronous_commit={level}"
    )
    bare.prepare_threshold = 0
    return bare


# --- append ---------------------------------------------------------------------------


def _append(bench: Bench, url: str, durability: Durability) -> None:
    schema = f"append_{durability}"
    turns = [turn.added for turn in growing(200)]
    supply, blobs = cycle(turns), cycle(map(orjson.dumps, turns))
    with (
        _connect(url, durability) as bare,
        holdfast.open(url, schema=schema, durability=durability) as store,
    ):
        bare.execute(
            f"create table {schema}.bare (n bigserial primary key, data bytea)"
        )
        insert = f"insert into {schema}.bare (data) values (%s)"
        thread = store.thread("chat")
        for _ in range(100):
            thread.append(messages=next(supply))
            bare.execute(insert, (next(blobs),), binary=True)
        pair = alternate(
            lambda: thread.append(messages=next(supply)),
            lambda: bare.execute(insert, (next(blobs),), binary=True),
            rounds=bench.amount(80, 30),
            block=10,
        )
    ours, reference = pair.medians
    work = f"PostgreSQL: append against a bare insert of its bytes, {durability}"
    limit = 1.5 if durability == "full" else None
    bench.rows.append(Row(work, pair.text("bare"), ours / reference, limit))


# --- load -----------------------------------------------------------------------------


def _load(bench: Bench, url: str) -> None:
    """Loading what the store does not know, against a row that holds it all."""
    with (
        _connect(url) as bare,
        holdfast.open(url, schema="load", cache_size=0) as store,
    ):
        *_, turn = _append_all(store.thread("chat"), STATE // 2)
        state = {"messages": turn.messages}
        bare.execute("create table load.whole (n int primary key, data bytea)")
        bare.execute("insert into load.whole values (1, %s)", (orjson.dumps(state),))
        thread = store.thread("chat")
        read = partial(_read_whole, bare)
        assert thread.load() == state == read()
        pair = alternate(
            thread.load, read, rounds=bench.amount(100, 30), block=3
        ).medians
        fresh = _first_loads(url, bench.amount(30, 10))
    work = f"PostgreSQL: load of {STATE:,} messages, not in the cache, against one row"
    bench.rows.append(Row(work, times(*pair, "one row"), pair[0] / pair[1], 1.3))
    work = f"PostgreSQL: first load of {STATE:,} messages on a new connection"
    bench.rows.append(Row(work, times(*fresh, "one row"), fresh[0] / fresh[1]))


def _append_all(thread: holdfast.Thread, count: int) -> Iterator[Turn]:
    for turn in growing(count):
        thread.append(messages=turn.added)
        yield turn


def _read_whole(bare: psycopg.Connection[Any]) -> Any:
    cursor = bare.execute("select data from load.whole where n = %s", (1,), binary=True)
    [(data,)] = cursor.fetchall()
    return orjson.loads(data)


def _first_loads(url: str, rounds: int) -> tuple[float, float]:
    ours: list[float] = []
    reference: list[float] = []
    for _ in range(rounds):
        with holdfast.open(url, schema="load") as store:
            ours.append(timed(store.thread("chat").load))
        with _connect(url) as bare:
            reference.append(timed(partial(_read_whole, bare)))
    return median(ours), median(reference)


# --- many at once ---------------------------------------------------------------------


def _tasks(bench: Bench, url: str) -> None:
    """Many tasks against one; and what as many bare inserts gain on this machine."""
    seconds = 2.0 if not bench.quick else 1.0
    rates: dict[tuple[str, int], list[float]] = defaultdict(list)
    for _ in range(bench.amount(5, 3)):
        for tasks in (TASKS, 1):
            rates["ours", tasks].append(asyncio.run(_rate(url, tasks, seconds)))
            rates["bare", tasks].append(asyncio.run(_bare_rate(url, tasks, seconds)))
    many, one = median(rates["ours", TASKS]), median(rates["ours", 1])
    measured = f"{many:,.0f} saves/s; one {one:,.0f} saves/s"
    work = f"PostgreSQL: {TASKS} tasks that save, full, against one"
    bench.rows.append(Row(work, measured, many / one, 6, "at least"))
    many, one = median(rates["bare", TASKS]), median(rates["bare", 1])
    measured = f"{many:,.0f} inserts/s; one {one:,.0f} inserts/s"
    work = f"PostgreSQL: {TASKS} tasks that insert a bare row, full, against one"
    bench.rows.append(Row(work, measured, many / one))


async def _bare_rate(url: str, tasks: int, seconds: float) -> float:
    make = "create table if not exists tasks.bare (n bigserial primary key, data bytea)"
    insert = "insert into tasks.bare (data) values (%s)"
    options = {"autocommit": True, "prepare_threshold": 0}
    async with AsyncConnectionPool(url, max_size=20, kwargs=options) as pool:
        async with pool.connection() as connection:
            await connection.execute(make)
        deadline = time.perf_counter() + seconds

        async def work(_: int) -> int:
            made = 0
            while time.perf_counter() < deadline:
                made += 1
                async with pool.connection() as connection:
                    await connection.execute(insert, (b"x" * 500,), binary=True)
            return made

        return sum(await asyncio.gather(*map(work, range(tasks)))) / seconds


async def _rate(url: str, tasks: int, seconds: float) -> float:
    writer = Writer()
    states = [{"note": writer.text(500), "step": n} for n in range(64)]
    options: Any = {"schema": "tasks", "pool": (1, 20), "busy_timeout": 60}
    async with holdfast.open_async(url, **options) as store:
        threads = [store.thread(f"t{number}") for number in range(tasks)]
        await asyncio.gather(*(thread.save(states[0]) for thread in threads))
        deadline = time.perf_counter() + seconds

        async def work(thread: holdfast.AsyncThread) -> int:
            saved = 0
            while time.perf_counter() < deadline:
                saved += 1
                await thread.save(states[saved % 64])
            return saved

        return sum(await asyncio.gather(*map(work, threads))) / seconds


# --- round trips ----------------------------------------------------------------------


def _trips(bench: Bench, url: str) -> None:
    """How often client and server wait for one another, by the driver's own trace."""
    options: Any = {"schema": "trips", "pool": (1, 1), "cache_size": 200_000}
    with holdfast.open(url, **options) as store:
        for _ in _append_all(store.thread("long"), STATE // 2):
            pass
        chat = store.thread("chat")
        calls: dict[str, Work] = {
            "a save": lambda: chat.save({"messages": ["x" * 500]}),
            "an append": lambda: chat.append(messages=["x" * 500]),
            "a compare-and-swap": _swap(store.thread("swapped")),
            "the first save of a thread": _first(store),
            "the head": lambda: chat.head,
            "a history page": lambda: chat.history(20),
            f"a load of {STATE:,} messages": store.thread("long").load,
        }
        for name, call in calls.items():
            for _ in range(10):
                call()
            trips = _count_trips(store, call)
            work = f"PostgreSQL: round trips of {name}"
            bench.rows.append(Row(work, str(trips), trips, 1))


def _swap(thread: holdfast.Thread) -> Work:
    heads = [thread.save({"n": 0})]

    def swap() -> None:
        heads.append(thread.save({"n": len(heads)}, expect=heads[-1]))

    return swap


def _first(store: holdfast.Store) -> Work:
    numbers = iter(range(1000))
    return lambda: store.thread(f"new {next(numbers)}").save({"n": 0}, expect=None)


def _count_trips(store: holdfast.Store, call: Work) -> int:
    packing: Any = store.runner.context.backend
    [connection] = packing.backend._connections._pool._pool
    with tempfile.TemporaryFile() as trace:
        connection.pgconn.trace(trace.fileno())
        call()
        connection.pgconn.untrace()
        trace.seek(0)
        return len(re.findall(rb"\tF\t\d+\t(?:Sync|Query)\b", trace.read()))


# --- size -----------------------------------------------------------------------------


def _sizes(bench: Bench, url: str) -> None:
    """A conversation through each store: how large its tables become, and how slow."""
    makers: dict[str, Callable[[str], Any]] = {
        "Holdfast append": partial(_Holdfast, compress=False),
        "Holdfast append, compressed": partial(_Holdfast, compress=True),
        "LangGraph PostgresSaver": _LangGraph,
        "LangGraph PostgresSaver, delta channels": partial(_LangGraph, deltas=True),
    }
    for store, make in makers.items():
        work = f"PostgreSQL: relations, {TURNS}-turn chat, {store}"
        limit = 2.0 if store == "Holdfast append" else None
        turns = TURNS if store.startswith("Holdfast") else bench.amount(TURNS, 60)
        try:
            series = _through(url, store, make, turns)
        except ImportError as error:
            bench.rows.append(failed(work, str(error), limit))
            continue
        bench.series.append(series)
        measured = f"{volume(series.disk)}; raw {volume(series.raw)}"
        if series.turns < TURNS:
            work = work.replace(f"{TURNS}-turn", f"{series.turns}-turn")
        bench.rows.append(Row(work, measured, series.ratio, limit))


class _Holdfast:
    def __init__(self, url: str, *, compress: bool) -> None:
        self.schema = f"chat_{compress}".lower()
        self._store = holdfast.open(url, schema=self.schema, compress=compress)
        self._thread = self._store.thread("chat")

    def save(self, turn: Turn) -> None:
        self._thread.append(messages=turn.added)

    def close(self) -> None:
        self._store.close()


class _LangGraph:
    """A graph of messages with one scripted node and a `PostgresSaver`."""

    def __init__(self, url: str, *, deltas: bool = False) -> None:
        graph = import_module("langgraph.graph")
        saver = import_module("langgraph.checkpoint.postgres").PostgresSaver
        rows = import_module("psycopg.rows")
        self.schema = "langgraph_deltas" if deltas else "langgraph"
        self._reply: Message = {}
        self._connection = psycopg.connect(
            url, autocommit=True, prepare_threshold=0, row_factory=rows.dict_row
        )
        self._connection.execute(f"create schema {self.schema}")
        self._connection.execute(f"set search_path = {self.schema}")
        checkpointer = saver(self._connection)
        checkpointer.setup()
        builder = graph.StateGraph(delta_state() if deltas else graph.MessagesState)
        builder.add_node("model", lambda _: {"messages": [self._reply]})
        builder.add_edge(graph.START, "model")
        builder.add_edge("model", graph.END)
        self._app = builder.compile(checkpointer=checkpointer)
        self._config = {"configurable": {"thread_id": "chat"}}

    def save(self, turn: Turn) -> None:
        question, self._reply = turn.added
        self._app.invoke({"messages": [question]}, self._config)

    def close(self) -> None:
        self._connection.close()


def _through(url: str, store: str, make: Callable[[str], Any], count: int) -> Series:
    recorder = make(url)
    samples: list[float] = []
    deadline = time.monotonic() + MOST_SECONDS
    raw = 0
    for turn in growing(count):
        samples.append(timed(partial(recorder.save, turn)))
        raw = json_size(turn.messages)
        if time.monotonic() > deadline:
            break
    recorder.close()
    return Series(
        store=f"PostgreSQL, {store}",
        turns=len(samples),
        raw=raw,
        disk=relations_size(url, recorder.schema),
        first=median(samples[:20]),
        last=median(samples[-20:]),
        p50=median(samples),
        p99=percentile(samples, 99),
    )


def relations_size(url: str, schema: str) -> int:
    """The bytes of all tables of a schema with what belongs to them."""
    with _connect(url) as admin:
        [(size,)] = admin.execute(
            "select sum(pg_total_relation_size(oid))::bigint from pg_class"
            " where relnamespace = to_regnamespace(%s) and relkind = 'r'",
            (schema,),
        ).fetchall()
    return int(size)
