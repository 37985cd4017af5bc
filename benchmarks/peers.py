"""What conversations are compared with: the stores of the contest, and SQLite
without anything of ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial

import apsw

from benchmarks.contest import peers
from benchmarks.contest.stores.chat import Chat

SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


def _opening(key: str) -> Callable[[str], Chat]:
    return partial(peers.opened, peers.PEERS[key].opens)


# And our saver as one of LangGraph's: beside those that store as much.
PEERS: dict[str, Callable[[str], Chat]] = {
    "HoldfastSaver in LangGraph": _opening("holdfast-saver"),
    "OpenAI Agents SQLiteSession (no history)": _opening("sqlite-session"),
    "whole state as one blob": _opening("blob"),
    "LangGraph SqliteSaver": _opening("sqlite-saver"),
    "LangGraph SqliteSaver, delta channels": _opening("sqlite-saver-deltas"),
}


def plain_database(path: str, synchronous: str) -> apsw.Connection:
    """APSW without anything of ours, writing ahead."""
    db = apsw.Connection(path)
    db.execute("pragma journal_mode = wal").fetchall()
    db.execute(f"pragma synchronous = {synchronous}")
    db.transaction_mode = "IMMEDIATE"
    return db


def settings(connection: sqlite3.Connection) -> str:
    """What a connection really does on a commit."""
    [[mode]] = connection.execute("pragma journal_mode").fetchall()
    [[level]] = connection.execute("pragma synchronous").fetchall()
    return f"{mode}, synchronous={SYNCHRONOUS[level]}"
