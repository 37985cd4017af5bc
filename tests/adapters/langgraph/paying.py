"""An agent that pays: a scripted model, a world that counts, and a graph of both."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

# What the model asks for in one reply: payments to people; or it says something.
Reply = Sequence[tuple[str, int]] | str


class Bank:
    """What the tools change; nothing in it is ever taken back by a store."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, int]] = []
        self.refs: list[str] = []
        self.fail: Callable[[], None] = lambda: None

    def transfer(self, to: str, amount: int, ref: str) -> str:
        """Pay somebody."""
        self.fail()
        self.paid.append((to, amount))
        self.refs.append(ref)
        return f"paid {to} {amount}, {len(self.paid)}"

    def tool(self) -> BaseTool:
        """The tool of the model, sync and async."""

        def pay(to: str, amount: int, ref: str) -> str:
            """Pay somebody."""
            return self.transfer(to, amount, ref)

        return tool(pay)


class Model:
    """Replies by a script, with an id and a reference of its own for every payment.

    A step back in the graph does not take the script back: asked again, a model
    decides again.
    """

    def __init__(self, *replies: Reply, ids: Sequence[str] = ()) -> None:
        self.replies, self.ids = list(replies), list(ids)

    def __call__(self, state: MessagesState) -> dict[str, Any]:
        reply = self.replies.pop(0)
        if isinstance(reply, str):
            return {"messages": [AIMessage(reply)]}
        return {"messages": [AIMessage("", tool_calls=[self._call(*p) for p in reply])]}

    def _call(self, to: str, amount: int) -> dict[str, Any]:
        id_ = self.ids.pop(0) if self.ids else f"call_{uuid.uuid4().hex}"
        args = {"to": to, "amount": amount, "ref": uuid.uuid4().hex}
        return {"name": "pay", "args": args, "id": id_}


def agent(model: Any, tools: Any) -> Any:
    """The usual loop of a model and a node for its tools."""
    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", ToolNode(tools) if isinstance(tools, list) else tools)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", _next, ["tools", END])
    builder.add_edge("tools", "model")
    return builder


def _next(state: MessagesState) -> str:
    return "tools" if state["messages"][-1].tool_calls else END


def say(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def before(graph: Any, node: str, config: Any, *, nth: int = 0) -> Any:
    """The config of the nth checkpoint, oldest first, at which a node is next."""
    found = [s for s in graph.get_state_history(config) if s.next == (node,)]
    return found[-1 - nth].config


class Sync:
    """Runs graphs by ``invoke``."""

    @staticmethod
    def invoke(graph: Any, *args: Any, **options: Any) -> Any:
        return graph.invoke(*args, **options)


class Async:
    """Runs graphs by ``ainvoke``."""

    @staticmethod
    def invoke(graph: Any, *args: Any, **options: Any) -> Any:
        return asyncio.run(graph.ainvoke(*args, **options))
