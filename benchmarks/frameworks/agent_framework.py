"""Checkpoints of a chat in a workflow: Holdfast beside the storage of files it ships.

Each turn is a checkpoint with the whole conversation in an executor's state. A load is
`get_latest`, as a worker does it that resumes.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from agent_framework import FileCheckpointStorage, Message, WorkflowCheckpoint

from benchmarks.frameworks.measured import Measured, main
from holdfast.adapters.agent_framework import HoldfastCheckpointStorage

NAME = "chat"
# Of an answer, in characters.
ANSWER = 900
# Few: the other storage reads all its files for each.
LOADS = 3
WRITERS, WRITES = 2, 50


def measure(folder: str, turns: int) -> tuple[Measured, list[Measured]]:
    """What both storages took for a conversation of so many turns."""
    return asyncio.run(_measure(Path(folder), turns))


async def _measure(folder: Path, turns: int) -> tuple[Measured, list[Measured]]:
    ours = HoldfastCheckpointStorage(folder / "chat.db")
    mine = await _of(ours, Measured("HoldfastCheckpointStorage"), turns)
    await ours.close()
    mine.size = (folder / "chat.db").stat().st_size
    racing = HoldfastCheckpointStorage(folder / "race.db")
    mine.lost = await _lost(racing)
    await racing.close()

    files = folder / "chat"
    theirs = FileCheckpointStorage(files)
    other = await _of(theirs, Measured("FileCheckpointStorage"), turns)
    other.size = sum(path.stat().st_size for path in files.iterdir())
    other.lost = await _lost(FileCheckpointStorage(folder / "race"))
    return mine, [other]


async def _of(storage: Any, measured: Measured, turns: int) -> Measured:
    said: list[Message] = []
    previous: str | None = None
    for turn in range(turns):
        said.append(Message("user", [f"question {turn}"]))
        said.append(Message("assistant", [f"{turn} ".ljust(ANSWER, "x")]))
        with measured.turn():
            previous = await storage.save(_checkpoint(said, turn, previous))
    for _ in range(LOADS):
        begun = time.process_time()
        await storage.get_latest(workflow_name=NAME)
        measured.loads.append(time.process_time() - begun)
    return measured


async def _lost(storage: Any) -> int:
    """Two workers go on from one checkpoint; how many of their checkpoints are gone."""
    start: str = await storage.save(_checkpoint([], 0, None))

    async def work(worker: int) -> list[str]:
        previous, saved = start, list[str]()
        for number in range(WRITES):
            said = [Message("user", [f"{worker} {number}"])]
            previous = await storage.save(_checkpoint(said, number, previous))
            saved.append(previous)
        return saved

    saved = await asyncio.gather(*map(work, range(WRITERS)))
    there = await storage.list_checkpoint_ids(workflow_name=NAME)
    return len({id_ for ids in saved for id_ in ids} - {*there})


def _checkpoint(
    said: list[Message], turn: int, previous: str | None
) -> WorkflowCheckpoint:
    executor = {"cache": [], "full_conversation": list(said)}
    return WorkflowCheckpoint(
        workflow_name=NAME,
        graph_signature_hash="0" * 64,
        previous_checkpoint_id=previous,
        state={"_executor_state": {"agent": executor}},
        iteration_count=turn,
    )


if __name__ == "__main__":
    main(measure)
