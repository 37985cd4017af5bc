"""Agents of the OpenAI Agents SDK that pay, are killed, and asked again.

usage: session_payments.py cut URL FILE [SCHEMA] | kills FOLDER STEP

``cut`` kills a child inside the tool, before or after it paid, asks another child to
pay, settles what is unknown, rewinds and asks once more. The tool notes each payment in
FILE. ``kills`` kills a child at each write to the disk in turn, or each STEP-th, asks
another one to pay, and reports what was wrong. In each of them the model makes the call
with an id and a reference of its own.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from agents import Agent, Runner, function_tool, set_tracing_disabled
from agents.exceptions import UserError

import holdfast
from adapters.openai_agents.scripted_model import Scripted, calls, says
from holdfast import Conflict
from holdfast.adapters.openai_agents import HoldfastSession
from holdfast.testing.faults import Fault, FaultyDisk, kill
from holdfast.testing.trials.children import Child
from support.report import report

set_tracing_disabled(True)

Tell = Callable[[object], None]


class Clerk:
    """An application that pays through a session, and may be killed while it does."""

    def __init__(self, store: Any, file: str, session: str = "chat") -> None:
        self.session, self.file = HoldfastSession(session, store), file
        self.killed: str | None = None

    def agent(self, ref: str, *, again: bool) -> Agent[Any]:
        @function_tool
        def pay(to: str, amount: int, reference: str) -> str:
            if self.killed == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            with open(self.file, "a") as file:
                file.write(f"{reference}\n")
            if self.killed == "after":
                os.kill(os.getpid(), signal.SIGKILL)
            return f"receipt {reference}"

        given = f'{{"to": "bob", "amount": 500, "reference": "{ref}"}}'
        model = Scripted(calls("pay", given, f"call_{ref}"), says("done"))
        tool = self.session.once(pay, again=again)
        return Agent(name="clerk", model=model, tools=[tool])

    async def pay(self, ref: str, *, again: bool = False) -> str:
        """The code of the conflict that ended the run, or what was said last."""
        try:
            agent = self.agent(ref, again=again)
            result = await Runner.run(agent, "Pay Bob 500.", session=self.session)
        except UserError as error:
            return code_of(error)
        return str(result.final_output)

    async def settle(self, ref: str) -> None:
        """A person looks whether the payment was made, and the model asks again."""
        paid = paid_in(self.file)
        if paid:
            [unknown] = await self.session.effects(left_behind=True)
            await self.session.resolve(unknown.call_id, f"receipt {paid[0]}")
        assert await self.pay(ref, again=not paid) == "done"

    async def receipt(self) -> str:
        items: list[Any] = await self.session.get_items()
        return [i["output"] for i in items if i.get("type") == "function_call_output"][
            -1
        ]


def code_of(error: UserError) -> str:
    assert isinstance(error.__cause__, Conflict)
    return error.__cause__.code


def paid_in(file: str) -> list[str]:
    if not os.path.exists(file):
        return []
    with open(file) as lines:
        return lines.read().split()


def cut(url: str, file: str, *schema: str) -> None:
    options: Any = {"schema": schema[0]} if schema else {}
    for when in ("before", "after"):
        work = partial(_cut, url, options, f"{file}.{when}", when)
        child = Child(partial(work, "pay"))
        child.wait()
        assert child.was_killed
        report(Child(partial(work, "settle")).finish())
        report([Child(partial(work, "rewind")).finish(), paid_in(f"{file}.{when}")])


def _cut(url: str, options: Any, file: str, when: str, what: str, tell: Tell) -> None:
    async def main() -> None:
        async with holdfast.open_async(url, **options) as store:
            clerk = Clerk(store, file, when)
            if what == "pay":
                clerk.killed = when
                await clerk.pay("a")
            elif what == "settle":
                tell(await clerk.pay("b"))
                await clerk.settle("c")
            else:
                await clerk.session.rewind((await clerk.session.history())[-1])
                tell(await clerk.pay("d"))
            tell(await clerk.receipt())

    asyncio.run(main())


# --- killed at each write -------------------------------------------------------------


def killed(path: str, at: int, tell: Tell) -> None:
    disk = FaultyDisk("killing", syncing=False)
    with disk.open(path) as store:
        disk.arm(Fault(at=at, effect=kill))
        asyncio.run(Clerk(store, f"{path}.paid").pay("a"))
    disk.remove()
    tell("done")


def asked_again(path: str, tell: Tell) -> None:
    with holdfast.open(path, durability="normal") as store:
        clerk = Clerk(store, f"{path}.paid")

        async def main() -> None:
            items = await clerk.session.get_items()
            if any(item.get("type") == "function_call_output" for item in items):
                await clerk.session.clear_session()
            said = await clerk.pay("b")
            tell(said)
            if said != "done":
                await clerk.settle("c")
            tell([paid_in(clerk.file), await clerk.receipt(), store.verify().ok])

        asyncio.run(main())


def kills(folder: str, step: str) -> None:
    wrong: list[object] = []
    seen: set[str] = set()
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
        [said, (paid, receipt, is_whole)] = Child(partial(asked_again, path)).finish()
        points += 1
        seen.add(said)
        if len(paid) != 1 or receipt != f"receipt {paid[0]}" or not is_whole:
            wrong.append([at, said, paid, receipt, is_whole])
        shutil.rmtree(place)
    report({"points": points, "wrong": wrong, "seen": sorted(seen)})


if __name__ == "__main__":
    # Of the SDK's dependencies, on older versions.
    warnings.simplefilter("ignore", DeprecationWarning)
    command, *rest = sys.argv[1:]
    {"cut": cut, "kills": kills}[command](*rest)
