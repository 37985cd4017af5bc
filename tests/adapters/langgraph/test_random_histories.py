"""Random turns, replays, edits, rewinds, forks and kills: each payment is made once.

In its n-th turn a thread pays n to bob, whatever happened before. All lines of a family
mean the same payments, so the bank must see none of them twice; and none is missing
that a state shows as paid.
"""

from __future__ import annotations

import random
import uuid

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

import holdfast
from adapters.langgraph.graphs import thread
from adapters.langgraph.paying import Async, Sync, agent, say
from holdfast.adapters.langgraph import HoldfastSaver, once
from support.effort import THOROUGH

ACTIONS = 14
SEEDS = range(100 if THOROUGH else 5)
DURABILITIES = ["sync", "async", "exit"]


class Killed(BaseException):
    """Ends a run as a kill does: nothing is recorded any more."""


class History:
    """A family of threads, the bank they pay from, and a person who looks into both."""

    def __init__(self, store, seed):
        self.store, self.choice = store, random.Random(seed)
        self.saver = HoldfastSaver(store)
        self.paid, self.kill = [], None
        self.name = "t0"
        self.graph = self.built().compile(checkpointer=self.saver)

    def built(self):
        tools = ToolNode([once(self._tool())], handle_tool_errors=True)
        return agent(self._model, tools)

    def _tool(self):
        @tool
        def pay(to: str, amount: int, ref: str) -> str:
            """Pay somebody."""
            kill, self.kill = self.kill, None
            if kill == "before":
                raise Killed
            self.paid.append(amount)
            if kill == "after":
                raise Killed
            return f"paid {amount}"

        return pay

    def _model(self, state):
        messages = state["messages"]
        turn = sum(isinstance(m, HumanMessage) for m in messages)
        kinds = [type(m) for m in messages]
        if ToolMessage in kinds[-1 - kinds[::-1].index(HumanMessage) :]:
            return {"messages": [AIMessage(f"turn {turn} is done")]}
        args = {"to": "bob", "amount": turn, "ref": uuid.uuid4().hex}
        id_ = self.choice.choice(["call_0", uuid.uuid4().hex])
        call = {"name": "pay", "args": args, "id": id_}
        return {"messages": [AIMessage("", tool_calls=[call])]}

    # --- actions ----------------------------------------------------------------------

    def act(self):
        action = self.choice.choice(
            [self.turn, self.turn, self.replay, self.edit, self.rewind, self.fork]
        )
        self.kill = self.choice.choice([None, None, "before", "after"])
        try:
            action()
        except Killed:
            self.recover()
        self.kill = None
        self.check()

    def run(self, given, config=None):
        invoke = self.choice.choice([Sync.invoke, Async.invoke])
        durability = self.choice.choice(DURABILITIES)
        invoke(self.graph, given, config or self.here, durability=durability)

    @property
    def here(self):
        return thread(self.name)

    def turn(self):
        self.run(say("pay bob"))

    def replay(self):
        self.run(None, self._point().config)

    def edit(self):
        note = {"messages": [AIMessage("a note")]}
        self.graph.update_state(self._point().config, note, as_node="tools")
        self.run(None)

    def rewind(self):
        at = self._point().config["configurable"]["checkpoint_id"]
        self.store.thread(self.name).rewind(at)
        self.run(None)

    def fork(self):
        at = self._point().config["configurable"]["checkpoint_id"]
        name = f"{self.name}.{uuid.uuid4().hex[:4]}"
        self.store.thread(self.name).fork(name, at=at)
        self.name = name
        self.run(None)

    def _point(self):
        """A checkpoint of this thread at which something is to be done."""
        history = list(self.graph.get_state_history(self.here))
        found = [s for s in history if s.next and s.values.get("messages")]
        return self.choice.choice(found or history[:1])

    def recover(self):
        """A person looks what the bank did, and the run goes on or is repeated."""
        for effect in self.saver.unknown(self.here):
            if effect.arguments["amount"] in self.paid:
                self.saver.resolve(effect, f"paid {effect.arguments['amount']}")
            else:
                self.saver.retry(effect)
        if self.graph.get_state(self.here).next:
            self.run(None)

    # --- what must hold ---------------------------------------------------------------

    def check(self):
        assert sorted(self.paid) == sorted(set(self.paid))
        messages = self.graph.get_state(self.here).values.get("messages", [])
        shown = [m.content for m in messages if isinstance(m, ToolMessage)]
        assert {f"paid {n}" for n in self.paid} >= set(shown)
        listed = self.store.thread(self.name).effects()
        made = {e.arguments["amount"] for e in listed if e.status == "completed"}
        assert {f"paid {n}" for n in made} == set(shown)


class NestedHistory(History):
    """The same agent as a subgraph: each run of it begins with the model."""

    def built(self):
        builder = StateGraph(MessagesState)
        builder.add_node("agent", super().built().compile())
        builder.add_edge(START, "agent")
        return builder

    def edit(self):
        self.graph.update_state(self._point().config, say("more"), as_node=START)
        self.run(None)


@pytest.mark.parametrize("kind", [History, NestedHistory])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_payment_is_made_once(kind, seed):
    with holdfast.open(":memory:") as store:
        history = kind(store, seed)
        history.turn()

        for _ in range(ACTIONS):
            history.act()

        assert store.verify().problems == ()
