"""Snapshots of an AG-UI thread: Holdfast beside the store in memory that it ships."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import orjson
from agent_framework_ag_ui import AGUIThreadSnapshot, InMemoryAGUIThreadSnapshotStore

from benchmarks.frameworks.measured import Measured, main
from holdfast.adapters.ag_ui import HoldfastThreadSnapshotStore

KEY = {"scope": "user", "thread_id": "chat"}
# Of an answer, in characters.
ANSWER = 900
LOADS = 10


def measure(folder: str, turns: int) -> tuple[Measured, list[Measured]]:
    """What both stores took for a conversation of so many turns.

    The store in memory has the last snapshot only: its size is that, as JSON.
    """
    return asyncio.run(_measure(Path(folder) / "threads.db", turns))


async def _measure(path: Path, turns: int) -> tuple[Measured, list[Measured]]:
    ours = HoldfastThreadSnapshotStore(path)
    mine = await _of(ours, Measured("HoldfastThreadSnapshotStore"), turns)
    await ours.close()
    mine.size = path.stat().st_size
    theirs = InMemoryAGUIThreadSnapshotStore()
    other = await _of(theirs, Measured("InMemoryAGUIThreadSnapshotStore"), turns)
    other.size = len(orjson.dumps(await theirs.get(**KEY)))
    return mine, [other]


async def _of(store: Any, measured: Measured, turns: int) -> Measured:
    said: list[dict[str, Any]] = []
    for turn in range(turns):
        said.append({"id": f"q{turn}", "role": "user", "content": f"question {turn}"})
        answer = f"{turn} ".ljust(ANSWER, "x")
        said.append({"id": f"a{turn}", "role": "assistant", "content": answer})
        snapshot = AGUIThreadSnapshot(messages=list(said), state={"turn": turn})
        with measured.turn():
            await store.save(**KEY, snapshot=snapshot)
    for _ in range(LOADS):
        begun = time.process_time()
        await store.get(**KEY)
        measured.loads.append(time.process_time() - begun)
    return measured


if __name__ == "__main__":
    main(measure)
