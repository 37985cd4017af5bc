"""A LangGraph graph of messages with one scripted node, and a saver."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, TypedDict

from benchmarks.contest.workload import Message, Turn
from holdfast.adapters.langgraph import HoldfastSaver

# Named by strings, because LangGraph gives its graphs no types that could be checked.
graph: Any = import_module("langgraph.graph")

THREAD = {"configurable": {"thread_id": "chat"}}


class SqliteSaverGraph:
    """The graph with LangGraph's own saver for SQLite."""

    def __init__(self, path: str, *, deltas: bool = False) -> None:
        self._reply: Message = {}
        builder = graph.StateGraph(delta_state() if deltas else graph.MessagesState)
        builder.add_node("model", self._answer)
        builder.add_edge(graph.START, "model")
        builder.add_edge("model", graph.END)
        self._opened, saver = self.open_saver(path)
        self._app: Any = builder.compile(checkpointer=saver)

    def _answer(self, _state: object) -> dict[str, list[Message]]:
        return {"messages": [self._reply]}

    @staticmethod
    def open_saver(path: str) -> tuple[Any, Any]:
        """What has to be closed, and the saver."""
        return sqlite_saver(path)

    def save(self, turn: Turn) -> None:
        """Run the graph with the question; it answers as the script says."""
        question, self._reply = turn.added
        self._app.invoke({"messages": [question]}, THREAD)

    def load(self) -> Sequence[object]:
        """The state of the graph."""
        found: list[object] = self._app.get_state(THREAD).values["messages"]
        return found

    def last(self, count: int) -> Sequence[object]:
        """The end of the whole state."""
        return self.load()[-count:]

    def close(self) -> None:
        """Close the saver's file."""
        self._opened.close()


class HoldfastSaverGraph(SqliteSaverGraph):
    """The same graph with our saver, as it opens a file by itself."""

    @staticmethod
    def open_saver(path: str) -> tuple[Any, Any]:
        """The saver closes its file itself."""
        saver = HoldfastSaver(path)
        return saver, saver


def sqlite_deltas(path: str) -> SqliteSaverGraph:
    """LangGraph's saver, with delta channels."""
    return SqliteSaverGraph(path, deltas=True)


def holdfast_deltas(path: str) -> HoldfastSaverGraph:
    """Our saver, with delta channels."""
    return HoldfastSaverGraph(path, deltas=True)


def sqlite_saver(
    path: str, synchronous: str = "full"
) -> tuple[sqlite3.Connection, Any]:
    """A saver and its connection, asked to write ahead and to sync every commit."""
    connection = sqlite3.connect(path, check_same_thread=False)
    saver = import_module("langgraph.checkpoint.sqlite").SqliteSaver(connection)
    saver.setup()
    connection.execute("pragma journal_mode = wal")
    connection.execute(f"pragma synchronous = {synchronous}")
    return connection, saver


def delta_state() -> Any:
    """A state whose messages are a delta channel, as Deep Agents declares it.

    LangGraph stores such a channel whole once in a hundred writes.
    """
    channel = import_module("langgraph.channels.delta").DeltaChannel
    reducer = import_module("langgraph.graph.message")._messages_delta_reducer
    messages: Any = Annotated[list[Any], channel(reducer)]
    # Not as a class: its annotations would be texts that name what only this knows.
    typed_dict: Any = TypedDict
    return typed_dict("DeltaState", {"messages": messages})
