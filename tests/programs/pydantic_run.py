"""One attempt at a durable run of Pydantic AI, which may end with kill -9.

Arguments: the address, the options as JSON, a folder for the world outside of the
store, and where to die: "model:2" when the model is asked the third time, "charge:1"
inside of the second charge, "" nowhere.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

import holdfast
from holdfast.adapters.pydantic_ai import HoldfastDurability
from support.report import report

address, options, folder, death = sys.argv[1:]
CHARGES = 3


def happen(what: str) -> None:
    """Make something happen in the world, durably."""
    with (Path(folder) / "world").open("a") as world:
        world.write(f"{what}\n")


def live_through(point: str) -> None:
    if point == death:
        os.kill(os.getpid(), signal.SIGKILL)


def answer(messages, info):
    del info
    asked = sum(message.kind == "response" for message in messages)
    live_through(f"model:{asked}")
    happen(f"model {asked}")
    if asked < CHARGES:
        return ModelResponse(parts=[ToolCallPart("charge", {"number": asked})])
    return ModelResponse(parts=[TextPart("all are charged")])


@holdfast.once
def charge(number: int) -> str:
    happen(f"charge {number}")
    live_through(f"charge:{number}")
    return f"charged {number}"


async def main() -> None:
    durability = HoldfastDurability(address, **json.loads(options))
    agent = Agent(
        FunctionModel(answer), name="payer", tools=[charge], capabilities=[durability]
    )
    try:
        async with durability.run("order-1"):
            report((await agent.run("charge three")).output)
    except holdfast.Conflict as conflict:
        report(conflict.code)
        [effect] = await durability.unknown("order-1")
        await durability.resolve(effect, "charged, says the bank")
    finally:
        await durability.close()


asyncio.run(main())
