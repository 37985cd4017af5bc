"""A graph that pays, in a process that kills itself at a given point.

usage: kill_graph.py PATH DURABILITY POINT

POINT is ``before`` or ``after`` the payment inside of the tool, ``later`` when the tool
has ended, ``never``, ``resolve`` or ``retry``; these decide about an unknown payment
first. The payments are lines in the file PATH.bank. Reports the code of the error that
ended the run, or null, and what the tool's answers are.
"""

from __future__ import annotations

import os
import signal
import sys
import uuid
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

import holdfast
from holdfast.adapters.langgraph import HoldfastSaver, once
from support.children import report

PATH, DURABILITY, POINT = sys.argv[1:]
CONFIG: Any = {"configurable": {"thread_id": "t"}}


def die(point: str) -> None:
    if point == POINT:
        os.kill(os.getpid(), signal.SIGKILL)


@once(key=("to", "amount"))
def pay(to: str, amount: int, ref: str) -> str:
    """Pay somebody."""
    die("before")
    with Path(f"{PATH}.bank").open("a") as bank:
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


def main() -> dict[str, Any]:
    with HoldfastSaver(PATH) as saver:
        for effect in saver.unknown(CONFIG):
            if POINT == "resolve":
                saver.resolve(effect, "paid bob, said the bank")
            elif POINT == "retry":
                saver.retry(effect)
        graph = build().compile(checkpointer=saver)
        begun = graph.get_state(CONFIG).next
        given = None if begun else {"messages": [("user", "pay bob")]}
        try:
            state = graph.invoke(given, CONFIG, durability=DURABILITY)
        except holdfast.Conflict as conflict:
            return {"error": conflict.code, "answers": []}
    answers = [m.content for m in state["messages"] if isinstance(m, ToolMessage)]
    return {"error": None, "answers": answers}


if __name__ == "__main__":
    report(main())
