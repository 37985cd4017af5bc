"""An agent that pays, a model that asks it to, and a bank that counts."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest
from agents import Agent, Runner, function_tool
from agents.exceptions import UserError
from agents.models.fake_id import FAKE_RESPONSES_ID

import holdfast
from adapters.openai_agents.scripted_model import Scripted, calls, says


class Cut(BaseException):
    """As a process that ends in the middle."""


def wants(ref, to="bob", amount=500, id=None, tool="pay"):
    """A reply of the model that asks for a payment; each with an id of its own.

    With ``id`` it is a model that uses ids again, and has none for items.
    """
    given = json.dumps({"to": to, "amount": amount, "ref": ref})
    item = FAKE_RESPONSES_ID if id else None
    return calls(tool, given, id or f"call_{ref}", item)


class Bank:
    """What was paid in the world; no store takes any of it back."""

    def __init__(self, **declared):
        self.paid, self.cancelled = [], []
        self.declared = {"key": ("to", "amount"), "undo": self.cancel} | declared
        self.cut = False
        self.fails = 0
        self._numbers = itertools.count()

    def tool(self, **options):
        """The tool ``pay``; the options are those of the SDK."""

        @function_tool(**options)
        def pay(to: str, amount: int, ref: str) -> str:
            if self.fails:
                self.fails -= 1
                raise OSError("the bank is closed")
            self.paid.append(ref)
            if self.cut:
                raise Cut
            return f"receipt {ref}"

        return pay

    def cancel(self, effect):
        self.cancelled.append(effect.arguments["ref"])

    def agent(self, session, *replies, again=False, **options):
        """An agent whose model gives these replies, then says that it is done."""
        last = says("done", f"msg_{next(self._numbers)}")
        tool = session.once(self.tool(**options), again=again, **self.declared)
        return Agent(name="clerk", model=Scripted(*replies, last), tools=[tool])

    async def pay(self, session, *replies, text="Pay Bob 500.", **options):
        """Run the agent until its model is done."""
        agent = self.agent(session, *replies, **options)
        return (await Runner.run(agent, text, session=session)).final_output

    async def killed_paying(self, session, ref):
        """The process ends within a payment, after it was made."""
        self.cut = True
        try:
            await self.pay(session, wants(ref))
        except Cut:
            self.cut = False
        else:
            raise AssertionError("it was not cut off")


def receipts(items):
    """The results of payments that the items have."""
    return [i["output"] for i in items if i.get("type") == "function_call_output"]


async def refused(coroutine):
    """The code of the `Conflict` that makes a run fail."""
    with pytest.raises((UserError, holdfast.Conflict)) as failed:
        await coroutine
    error = failed.value
    conflict = error.__cause__ if isinstance(error, UserError) else error
    assert isinstance(conflict, holdfast.Conflict)
    return conflict.code


async def awaited(result):
    """The result of a method of either API of a store."""
    return await result if asyncio.iscoroutine(result) else result


async def rewound(session):
    """Back to the beginning, by a rewind of the thread."""
    first = (await session.history())[-1]
    await session.rewind(first)
    return session


async def forked(session):
    """A fork at the beginning."""
    return await session.fork("fork", at=(await session.history())[-1])
