"""The stores a conversation is saved to, each behind the same two methods.

All of them write ahead with ``synchronous=FULL`` where their API lets us ask for it,
so that everybody pays for the same promise. Peers are imported when they are used.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Annotated, Any, Protocol

import apsw
import orjson

import holdfast
from benchmarks.workloads import Message, Turn

SYNCHRONOUS = {0: "OFF", 1: "NORMAL", 2: "FULL", 3: "EXTRA"}


class Recorder(Protocol):
    """Keeps a conversation in one file."""

    def save(self, turn: Turn) -> None:
        """Make a turn durable."""
        ...

    def close(self) -> None:
        """Let go of the file, with nothing left in its log."""
        ...


class HoldfastSave:
    """The whole state, every turn."""

    def __init__(self, path: str, *, compress: bool = False) -> None:
        self._store = holdfast.open(path, compress=compress)
        self._thread = self._store.thread("chat")

    def save(self, turn: Turn) -> None:
        self._thread.save({"messages": turn.messages})

    def close(self) -> None:
        self._store.close()


class HoldfastAppend(HoldfastSave):
    """Only what is new, every turn."""

    def save(self, turn: Turn) -> None:
        self._thread.append(messages=turn.added)


class WholeBlob:
    """The whole state as one blob a save, as simple stores do it."""

    def __init__(self, path: str) -> None:
        self._db = plain_database(path, "FULL")
        self._db.execute("create table state (n integer primary key, data blob)")

    def save(self, turn: Turn) -> None:
        data = orjson.dumps({"messages": turn.messages})
        with self._db:
            self._db.execute("insert into state (data) values (?)", (data,))

    def close(self) -> None:
        self._db.close()


class LangGraph:
    """A graph of messages with one scripted node and a `SqliteSaver`.

    With ``deltas`` its messages are a delta channel, which LangGraph stores whole once
    in a hundred writes.
    """

    def __init__(self, path: str, *, deltas: bool = False) -> None:
        graph = import_module("langgraph.graph")
        self._reply: Message = {}
        builder = graph.StateGraph(delta_state() if deltas else graph.MessagesState)
        builder.add_node("model", lambda _: {"messages": [self._reply]})
        builder.add_edge(graph.START, "model")
        builder.add_edge("model", graph.END)
        self._opened, saver = self._open(path)
        self._app = builder.compile(checkpointer=saver)
        self._config = {"configurable": {"thread_id": "chat"}}

    def save(self, turn: Turn) -> None:
        question, self._reply = turn.added
        self._app.invoke({"messages": [question]}, self._config)

    def close(self) -> None:
        self._opened.close()

    def _open(self, path: str) -> tuple[Any, Any]:
        """What has to be closed, and the saver."""
        return langgraph_saver(path)


class HoldfastInLangGraph(LangGraph):
    """The same graph with our saver, as it opens a file by itself."""

    def _open(self, path: str) -> tuple[Any, Any]:
        saver = import_module("holdfast.adapters.langgraph").HoldfastSaver(path)
        return saver, saver


class OpenAIAgents:
    """The items of a turn added to an `SQLiteSession`."""

    def __init__(self, path: str) -> None:
        self._session = import_module("agents").SQLiteSession("chat", path)
        self._loop = asyncio.new_event_loop()

    def save(self, turn: Turn) -> None:
        self._loop.run_until_complete(self._session.add_items(turn.added))

    def close(self) -> None:
        self._session.close()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


# And our saver as one of LangGraph's: beside those that store as much.
PEERS: dict[str, Callable[[str], Recorder]] = {
    "HoldfastSaver in LangGraph": HoldfastInLangGraph,
    "OpenAI Agents SQLiteSession (no history)": OpenAIAgents,
    "whole state as one blob": WholeBlob,
    "LangGraph SqliteSaver": LangGraph,
    "LangGraph SqliteSaver, delta channels": partial(LangGraph, deltas=True),
}


def plain_database(path: str, synchronous: str) -> apsw.Connection:
    """APSW without anything of ours, writing ahead."""
    db = apsw.Connection(path)
    db.execute("pragma journal_mode = wal").fetchall()
    db.execute(f"pragma synchronous = {synchronous}")
    db.transaction_mode = "IMMEDIATE"
    return db


def delta_state() -> Any:
    """A state whose messages are a delta channel, as Deep Agents declares it."""
    channel = import_module("langgraph.channels.delta").DeltaChannel
    message = import_module("langgraph.graph.message")
    messages: Any = Annotated[list[Any], channel(message._messages_delta_reducer)]
    # Not as a class: its annotations would be texts that name what only this knows.
    return import_module("typing").TypedDict("DeltaState", {"messages": messages})


def langgraph_saver(
    path: str, synchronous: str = "full"
) -> tuple[sqlite3.Connection, Any]:
    """A saver and its connection, asked to write ahead and to sync every commit."""
    connection = sqlite3.connect(path, check_same_thread=False)
    saver = import_module("langgraph.checkpoint.sqlite").SqliteSaver(connection)
    saver.setup()
    connection.execute("pragma journal_mode = wal")
    connection.execute(f"pragma synchronous = {synchronous}")
    return connection, saver


def settings(connection: sqlite3.Connection) -> str:
    """What a connection really does on a commit."""
    [[mode]] = connection.execute("pragma journal_mode").fetchall()
    [[level]] = connection.execute("pragma synchronous").fetchall()
    return f"{mode}, synchronous={SYNCHRONOUS[level]}"
