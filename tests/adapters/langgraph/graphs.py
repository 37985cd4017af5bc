"""Graphs with scripted nodes for the tests: no model, no network."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send, interrupt

import holdfast


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    count: int


def echo(state: MessagesState) -> dict[str, Any]:
    last = state["messages"][-1]
    return {"messages": [AIMessage(f"You said: {last.content}")]}


def chat(model: Any = echo) -> StateGraph:
    """Answers every message."""
    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_edge(START, "model")
    builder.add_edge("model", END)
    return builder


def say(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def texts(state: dict[str, Any]) -> list[str]:
    return [message.content for message in state["messages"]]


def asking() -> StateGraph:
    """Works, asks a person, and works again."""
    builder = StateGraph(Log)
    builder.add_node("before", lambda _: {"log": ["before"]})
    builder.add_node("ask", lambda _: {"log": [interrupt("May I?")]})
    builder.add_node("after", lambda _: {"log": ["after"]})
    builder.add_edge(START, "before")
    builder.add_edge("before", "ask")
    builder.add_edge("ask", "after")
    return builder


def counting(until: int) -> StateGraph:
    """A loop of one node."""
    builder = StateGraph(Log)
    builder.add_node(
        "count",
        lambda state: {
            "count": state.get("count", 0) + 1,
            "log": [str(state.get("count", 0))],
        },
    )
    builder.add_edge(START, "count")
    builder.add_conditional_edges(
        "count", lambda state: "count" if state["count"] < until else END
    )
    return builder


def spreading() -> StateGraph:
    """Sends three tasks out at once and joins them."""
    builder = StateGraph(Log)
    builder.add_node("plan", lambda _: {"log": ["plan"]})
    builder.add_node("work", lambda task: {"log": [task["name"]]})
    builder.add_node("join", lambda _: {"log": ["join"]})
    builder.add_edge(START, "plan")
    builder.add_conditional_edges(
        "plan", lambda _: [Send("work", {"name": name}) for name in "abc"], ["work"]
    )
    builder.add_edge("work", "join")
    return builder


def nested(checkpointer: Any = None) -> StateGraph:
    """A subgraph that asks, between two nodes."""
    inner = asking().compile(checkpointer=checkpointer)
    builder = StateGraph(Log)
    builder.add_node("first", lambda _: {"log": ["first"]})
    builder.add_node("inner", inner)
    builder.add_node("last", lambda _: {"log": ["last"]})
    builder.add_edge(START, "first")
    builder.add_edge("first", "inner")
    builder.add_edge("inner", "last")
    return builder


def thread(name: str, **more: Any) -> dict[str, Any]:
    """The config of a thread."""
    return {"configurable": {"thread_id": name, **more}}


def put(
    saver: Any,
    config: dict[str, Any],
    channels: dict[str, Any] | None = None,
    **about: Any,
) -> Any:
    """A checkpoint with channels, as a run would put it."""
    config = {"configurable": {"checkpoint_ns": "", **config["configurable"]}}
    versions = dict.fromkeys(channels or {}, 1)
    checkpoint = {
        **empty_checkpoint(),
        "channel_values": channels or {},
        "channel_versions": versions,
    }
    checkpoint.update(about.pop("checkpoint", {}))
    metadata = {"source": "loop", "step": 0, "parents": {}, **about}
    return saver.put(config, checkpoint, metadata, versions)


@contextlib.contextmanager
def refused(code: str) -> Iterator[Any]:
    """Expects a conflict with a code."""
    with pytest.raises(holdfast.Conflict) as caught:
        yield caught
    assert caught.value.code == code
