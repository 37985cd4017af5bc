"""Runs of the OpenAI Agents SDK that are paused, killed and resumed.

usage: paused_runs.py pause PATH | kills FOLDER STEP

``pause`` runs an agent in a child until it wants its tool approved, and keeps the run;
another child approves it and goes on. The tool notes each time it runs in the file
PATH.effects.
``kills`` does both in children that are killed at each write to the disk in turn, or
each STEP-th, goes on in a new child, and reports what was wrong.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from agents import Agent, Runner, RunState, function_tool, set_tracing_disabled
from agents.exceptions import UserError

import holdfast
from adapters.openai_agents.scripted_model import Scripted, calls, says
from holdfast import Conflict, Store
from holdfast.adapters.openai_agents import HoldfastSession
from holdfast.testing.faults import Fault, FaultyDisk, kill
from holdfast.testing.trials.children import Child
from support.report import report

set_tracing_disabled(True)

ID = "refund-4812"
START = ["user", "function_call"]
TOLD = [*START, "function_call_output"]
# With the items, whether there is a paused run. A run that is started in a transaction
# leaves nothing else behind, whenever it is killed.
WHOLE = [([], False), (START, True), (TOLD, False), ([*TOLD, "message"], False)]
Tell = Callable[[object], None]


class Clerk(Scripted):
    """Calls the tool unless it has been called."""

    def _next(self, input_: Any) -> Any:
        self.inputs.append(input_)
        told = any(item.get("type") == "function_call_output" for item in input_)
        return [says("Done.")] if told else [calls("refund", '{"order": 4812}')]


class Work:
    """An application that goes on with its session wherever that was left."""

    def __init__(self, store: Store, path: str) -> None:
        self.store, self.effects = store, f"{path}.effects"
        self.session = HoldfastSession(ID, store)

    def agent(self, *, again: bool = False) -> Agent[Any]:
        @function_tool(needs_approval=True)
        def refund(order: int) -> str:
            with open(self.effects, "a") as file:
                file.write(f"{order}\n")
            return f"refunded {order}"

        tool = self.session.once(refund, again=again)
        return Agent(name="clerk", model=Clerk(), tools=[tool])

    async def start(self, input_: Any) -> None:
        async with self.session.transaction():
            agent = self.agent()
            result = await Runner.run(agent, input_, session=self.session)
            if result.interruptions:
                await self.session.save_run(result.to_state())

    async def resume(self, state: RunState[Any, Any], agent: Agent[Any]) -> None:
        for item in state.get_interruptions():
            state.approve(item)
        await Runner.run(agent, state, session=self.session)

    async def step(self) -> bool:
        """Do what is next; whether there was anything."""
        agent = self.agent()
        state = await self.session.load_run(agent)
        if state is not None:
            try:
                await self.resume(state, agent)
            except UserError as error:
                await self.settle(error.__cause__)
            return True
        kinds = await self.kinds()
        if not kinds:
            await self.start("Please refund order 4812")
        elif kinds[-1] == "function_call_output":
            await self.start([])
        return kinds[-1:] != ["message"]

    async def settle(self, conflict: object) -> None:
        """A person checked whether the call that was cut off has taken effect."""
        assert isinstance(conflict, Conflict)
        assert conflict.code == "call_interrupted"
        if os.path.exists(self.effects):
            recorder = self.store.conversations.recorder(ID)
            recorder.resolve("call_1", "refunded 4812")
            return
        agent = self.agent(again=True)
        state = await self.session.load_run(agent)
        assert state is not None
        await self.resume(state, agent)

    async def kinds(self) -> list[str]:
        items = await self.session.get_items()
        return [item.get("type") or item["role"] for item in items]

    async def finish(self) -> None:
        while await self.step():
            pass


def lines_of(path: str) -> list[str]:
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return file.read().split()


def killed(path: str, at: int, tell: Tell) -> None:
    """Work until the n-th write to the disk."""
    disk = FaultyDisk("killing", syncing=False)
    with disk.open(path) as store:
        disk.arm(Fault(at=at, effect=kill))
        asyncio.run(Work(store, path).finish())
    disk.remove()
    tell("done")


def goes_on(path: str, tell: Tell) -> None:
    """Look what is there, then work to the end of it."""
    with holdfast.open(path, durability="normal") as store:
        work = Work(store, path)
        agent = work.agent()

        async def found() -> object:
            is_paused = await work.session.load_run(agent) is not None
            return await work.kinds(), is_paused

        tell(asyncio.run(found()))
        asyncio.run(work.finish())
        tell([asyncio.run(work.kinds()), lines_of(work.effects), store.verify().ok])


def kills(folder: str, step: str) -> None:
    wrong: list[object] = []
    seen: list[object] = []
    at = points = 0
    while True:
        at += int(step)
        place = os.path.join(folder, str(at))
        os.mkdir(place)
        path = os.path.join(place, "agents.db")
        child = Child(partial(killed, path, at))
        child.wait()
        if not child.was_killed:
            break
        [(kinds, is_paused), end] = Child(partial(goes_on, path)).finish()
        points += 1
        seen.append((kinds, is_paused))
        if (kinds, is_paused) not in WHOLE:
            wrong.append([at, "left", kinds, is_paused])
        if end != [[*TOLD, "message"], ["4812"], True]:
            wrong.append([at, "ended", end])
        shutil.rmtree(place)
    missed = [list(state) for state in WHOLE[:3] if state not in seen]
    report({"points": points, "wrong": wrong, "missed": missed})


def pause(path: str) -> None:
    for work in (paused, resumed):
        [found] = Child(partial(_awaited, work, path)).finish()
        report(found)


def _awaited(
    work: Callable[[str], Coroutine[Any, Any, object]], path: str, tell: Tell
) -> None:
    tell(asyncio.run(work(path)))


async def paused(path: str) -> list[str]:
    with holdfast.open(path) as store:
        work = Work(store, path)
        await work.start("Please refund order 4812")
        return await work.kinds()


async def resumed(path: str) -> object:
    with holdfast.open(path) as store:
        work = Work(store, path)
        agent = work.agent()
        state = await work.session.load_run(agent)
        assert state is not None
        asked = [item.tool_name for item in state.get_interruptions()]
        await work.resume(state, agent)
        gone = await work.session.load_run(agent) is None
        return [asked, await work.kinds(), lines_of(work.effects), gone]


if __name__ == "__main__":
    # Of the SDK's dependencies, on older versions.
    warnings.simplefilter("ignore", DeprecationWarning)
    command, *rest = sys.argv[1:]
    {"pause": pause, "kills": kills}[command](*rest)
