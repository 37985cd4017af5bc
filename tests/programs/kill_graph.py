"""A graph that pays, in processes that kill themselves at given points.

usage: kill_graph.py FOLDER DURABILITY:POINT,... ...

Each argument is a graph on a file of its own. For each POINT, one after the other, a
new process runs it: ``before`` or ``after`` the payment inside of the tool, ``later``
when the tool has ended, ``never``, ``resolve`` or ``retry``; these decide about an
unknown payment first. For each graph a line of JSON: how its processes ended, and the
number of payments. A process ends with "killed", or with the code of the error that
ended the run, or null, and the tool's answers.
"""

from __future__ import annotations

import os
import signal
import sys
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, once
from holdfast.testing.trials.children import Child
from support.report import report

FOLDER, *GRAPHS = sys.argv[1:]
Tell = Callable[[object], None]
CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Fate:
    """Where this process runs a graph, and the point at which it dies or decides."""

    path = durability = ""
    point = "never"


def die(point: str) -> None:
    if point == Fate.point:
        os.kill(os.getpid(), signal.SIGKILL)


@once(key=("to", "amount"))
def pay(to: str, amount: int, ref: str) -> str:
    """Pay somebody."""
    die("before")
    with Path(f"{Fate.path}.bank").open("a") as bank:
        bank.write(f"{to} {amount} {ref}\n")
        bank.flush()
        os.fsync(bank.fileno())
    die("after")
    return f"paid {to}"


def model(state: MessagesState) -> Any:
    if isinstance(state["messages"][-1], ToolMessage):
        die("later")
        return {"messages": [AIMessage("done")]}
    args = {"to": "bob", "amount": 5, "ref": uuid.uuid4().hex}
    call = {"name": "pay", "args": args, "id": uuid.uuid4().hex}
    return {"messages": [AIMessage("", tool_calls=[call])]}


def build() -> StateGraph[Any]:
    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", ToolNode([pay], handle_tool_errors=True))
    builder.add_edge(START, "model")
    builder.add_conditional_edges(
        "model", lambda s: "tools" if s["messages"][-1].tool_calls else END
    )
    builder.add_edge("tools", "model")
    return builder


def run() -> list[Any]:
    with HoldfastSaver(Fate.path) as saver:
        for effect in saver.unknown(CONFIG):
            if Fate.point == "resolve":
                saver.resolve(effect, "paid bob, said the bank")
            elif Fate.point == "retry":
                saver.retry(effect)
        graph = build().compile(checkpointer=saver)
        begun = graph.get_state(CONFIG).next
        given = None if begun else {"messages": [("user", "pay bob")]}
        try:
            state = graph.invoke(given, CONFIG, durability=Fate.durability)
        except holdfast.Conflict as conflict:
            return [conflict.code, []]
    answers = [m.content for m in state["messages"] if isinstance(m, ToolMessage)]
    return [None, answers]


def live(point: str, tell: Tell) -> None:
    """In a child: run the graph, up to a point."""
    Fate.point = point
    tell(run())


def payments() -> int:
    bank = Path(f"{Fate.path}.bank")
    return len(bank.read_text().splitlines()) if bank.exists() else 0


def main() -> None:
    for number, graph in enumerate(GRAPHS):
        Fate.path = f"{FOLDER}/{number}.db"
        Fate.durability, _, points = graph.partition(":")
        ends: list[object] = []
        for point in points.split(","):
            child = Child(partial(live, point))
            said = child.wait()
            ends.append("killed" if child.was_killed else said[0])
        report([ends, payments()])


if __name__ == "__main__":
    main()
