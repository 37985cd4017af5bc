"""Two processes that add to one session of the OpenAI Agents SDK and pop from it.

usage: rival_sessions.py PATH

Reports the texts that are there in the end.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Callable
from functools import partial

import holdfast
from holdfast.adapters.openai_agents import HoldfastSession
from holdfast.testing.trials.children import Child
from support.report import report

ROUNDS = 40
Tell = Callable[[object], None]


def work(path: str, name: str, tell: Tell) -> None:
    async def main() -> None:
        async with HoldfastSession("s", path, durability="normal") as session:
            for n in range(ROUNDS):
                item = {"role": "user", "content": f"{name} {n}"}
                await session.add_items([dict(item) for _ in range(3)])
                if n % 8 == 7:
                    await session.pop_item()

    asyncio.run(main())
    tell("done")


def left(path: str, tell: Tell) -> None:
    with holdfast.open(path) as store:
        items = asyncio.run(HoldfastSession("s", store).get_items())
        counted = store.conversations.list()[0].messages
        tell([[i["content"] for i in items], counted, store.verify().ok])


if __name__ == "__main__":
    # Of the SDK's dependencies, on older versions.
    warnings.simplefilter("ignore", DeprecationWarning)
    where = sys.argv[1]
    rivals = [Child(partial(work, where, name)) for name in ("ann", "bob")]
    assert [rival.finish() for rival in rivals] == [["done"]] * 2
    report(Child(partial(left, where)).finish()[0])
