"""LangGraph's delta channels on Holdfast's saver and on LangGraph's own.

A delta channel is stored whole once in a hundred writes. In between, a load reads what
tasks wrote on up to 150 checkpoints, so it is measured at every turn of such a cycle.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib import import_module
from statistics import mean, median
from typing import Any, NamedTuple

import psycopg

import holdfast
from benchmarks.contest.stores.langgraph import delta_state, sqlite_saver
from benchmarks.contest.units import volume
from benchmarks.langgraph_savers import CHAT, TURNS, Talk, config_of
from benchmarks.measure import Bench, Cost, cost_of, disk_size
from benchmarks.postgres import relations_size
from benchmarks.report import Row, times
from benchmarks.server import private_server
from holdfast.adapters.langgraph import HoldfastSaver

# Two writes a turn: after so many turns LangGraph stores the channel whole again.
CYCLE = 50
FIRST_LOADS = 10
# Turns and loads of a cycle differ. First loads are all alike, but now and then one has
# to collect the garbage of the whole benchmark.
AVERAGES = {"turns": mean, "loads": mean, "first_loads": median}

Opened = AbstractContextManager[Any]


class Measured(NamedTuple):
    """What each turn and each load of a cycle cost, and loads by new savers."""

    turns: list[Cost]
    loads: list[Cost]
    first_loads: list[Cost]


def delta_channels(bench: Bench) -> None:
    """The same conversation with both savers, in a file and on a server."""
    turns = bench.amount(TURNS, 2 * CYCLE)
    for compress in (True, False):
        _in_files(bench, turns, compress=compress)
    with private_server() as url:
        _on_server(bench, turns, url)


def _in_files(bench: Bench, turns: int, *, compress: bool) -> None:
    with bench.place() as folder:
        paths = [os.path.join(folder, name) for name in ("ours.db", "theirs.db")]
        ours = partial(_our_file, paths[0], compress=compress)
        measured = _measure(turns, ours, partial(_their_file, paths[1]))
        sizes = [disk_size(path) for path in paths]
    place = "a file" if compress else "a file, uncompressed"
    _report(bench, place, "SqliteSaver", sizes, measured)


def _on_server(bench: Bench, turns: int, url: str) -> None:
    schemas = "delta_ours", "delta_theirs"
    ours = partial(_our_schema, url, schemas[0])
    measured = _measure(turns, ours, partial(_their_schema, url, schemas[1]))
    sizes = [relations_size(url, schema) for schema in schemas]
    _report(bench, "PostgreSQL", "PostgresSaver", sizes, measured)


def _report(
    bench: Bench, place: str, peer: str, sizes: list[int], measured: list[Measured]
) -> None:
    work = f"LangGraph's delta channels, {place}"
    ours, theirs = sizes
    text = f"{volume(ours)}; {peer} {volume(theirs)}"
    bench.rows.append(Row(f"{work}: bytes against {peer}", text, ours / theirs, 1.0))
    for what in Measured._fields:
        for kind in Cost._fields:
            one, other = (
                AVERAGES[what](getattr(cost, kind) for cost in getattr(side, what))
                for side in measured
            )
            name = f"{work}: {what.replace('_', ' ')}, {kind} time against {peer}"
            bench.rows.append(Row(name, times(one, other, peer), one / other, 1.0))


# --- a conversation -------------------------------------------------------------------


def _measure(turns: int, *sides: Callable[[], Opened]) -> list[Measured]:
    """Both sides of a comparison, turn by turn; only the last cycle is measured.

    It ends one turn before the channel would be stored whole, with the longest chain.
    """
    for opened in sides:
        with opened() as saver:
            talk = Talk(saver, delta_state())
            for _ in range(turns - CYCLE - 1):
                talk.turn(CHAT)
    measured = [Measured([], [], []) for _ in sides]
    with sides[0]() as one, sides[1]() as other:
        talks = [Talk(one, delta_state()), Talk(other, delta_state())]
        pairs = list(zip(talks, measured, strict=True))
        for _ in range(CYCLE):
            for talk, result in pairs:
                result.turns.append(cost_of(partial(talk.turn, CHAT)))
                load = partial(talk.app.get_state, config_of(CHAT))
                result.loads.append(cost_of(load))
            pairs.reverse()
        for talk in talks:
            found = talk.app.get_state(config_of(CHAT)).values["messages"]
            assert len(found) == 2 * (turns - 1)
    for _ in range(FIRST_LOADS):
        for opened, result in zip(sides, measured, strict=True):
            with opened() as saver:
                app = Talk(saver, delta_state()).app
                load = partial(app.get_state, config_of(CHAT))
                result.first_loads.append(cost_of(load))
    return measured


@contextmanager
def _our_file(path: str, *, compress: bool) -> Iterator[Any]:
    with holdfast.open(path, compress=compress) as store:
        yield HoldfastSaver(store)


@contextmanager
def _their_file(path: str) -> Iterator[Any]:
    connection, saver = sqlite_saver(path)
    yield saver
    connection.close()


@contextmanager
def _our_schema(url: str, schema: str) -> Iterator[Any]:
    with holdfast.open(url, schema=schema) as store:
        yield HoldfastSaver(store)


@contextmanager
def _their_schema(url: str, schema: str) -> Iterator[Any]:
    rows = import_module("psycopg.rows")
    with psycopg.connect(
        url, autocommit=True, prepare_threshold=0, row_factory=rows.dict_row
    ) as connection:
        connection.execute(f"create schema if not exists {schema}")
        connection.execute(f"set search_path = {schema}")
        saver = import_module("langgraph.checkpoint.postgres").PostgresSaver(connection)
        saver.setup()
        yield saver
