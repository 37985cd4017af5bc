"""A session that the OpenAI Agents SDK compacts, killed at each write to the disk.

usage: compacting.py FOLDER

Reports the items that were found afterwards, and whether they are all old or all new.
"""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from agents import OpenAIResponsesCompactionSession

import holdfast
from holdfast.adapters.openai_agents import HoldfastSession
from holdfast.testing.faults import Fault, FaultyDisk, kill
from holdfast.testing.trials.children import Child
from support.report import report

ID = "long"
OLD = [{"role": "user", "content": f"question {n} " + "x" * 200} for n in range(20)]
NEW = [{"type": "compaction", "id": "cmp_1", "encrypted_content": "all of it"}]
Tell = Callable[[object], None]


async def compact(**request: Any) -> Any:
    """What the service answers."""
    return SimpleNamespace(output=[dict(item) for item in NEW], usage=None)


def compacting(session: HoldfastSession) -> OpenAIResponsesCompactionSession:
    client: Any = SimpleNamespace(responses=SimpleNamespace(compact=compact))
    return OpenAIResponsesCompactionSession(ID, session, client=client)


def killed(path: str, at: int, tell: Tell) -> None:
    disk = FaultyDisk("killing", syncing=False)

    async def main(session: HoldfastSession) -> None:
        await session.add_items([dict(item) for item in OLD])
        disk.arm(Fault(at=at, effect=kill))
        await compacting(session).run_compaction({"force": True})

    with disk.open(path) as store:
        asyncio.run(main(HoldfastSession(ID, store)))
        disk.heal()
    disk.remove()
    tell("done")


def left(path: str, tell: Tell) -> None:
    with holdfast.open(path) as store:
        tell([asyncio.run(HoldfastSession(ID, store).get_items()), store.verify().ok])


def main(folder: str) -> None:
    found: list[str] = []
    while True:
        path = os.path.join(folder, f"{len(found)}.db")
        child = Child(partial(killed, path, len(found) + 1))
        child.wait()
        [(items, is_sound)] = Child(partial(left, path)).finish()
        assert is_sound
        names = {str(OLD): "old", str(NEW): "new"}
        found.append(names.get(str(items), f"{len(items)} items"))
        if not child.was_killed:
            break
    report(found)


if __name__ == "__main__":
    # Of the SDK's dependencies, on older versions.
    warnings.simplefilter("ignore", DeprecationWarning)
    main(sys.argv[1])
