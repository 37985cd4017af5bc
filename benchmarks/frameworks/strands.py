"""Strands Agents: every turn as an immutable snapshot, and the message log in files."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import process_time

from strands import Agent
from strands.models import Model
from strands.session import (
    FileSessionManager,
    SessionManager,
    SnapshotSessionManager,
)
from strands.storage import LocalFileStorage
from strands.types.exceptions import StorageError

import holdfast
from benchmarks.frameworks.measured import Measured, main
from holdfast.adapters.strands import HoldfastStorage

LOADS = 20
UPDATES = 100
SYSTEM = "You plan trips. " * 60
# Makes the manager of a session.
Open = Callable[[str], SessionManager]


class NoModel(Model):
    """For agents that are never asked."""

    def update_config(self, **config): ...
    def get_config(self): ...
    def structured_output(self, *args, **kwargs): ...
    def stream(self, *args, **kwargs): ...


def measure(folder: str, turns: int) -> tuple[Measured, list[Measured]]:
    """A conversation in each store, every turn of it saved."""
    ours = Measured("Holdfast")
    with holdfast.open(f"{folder}/talk.db") as store:
        _measure(ours, lambda id_: _snapshots(id_, HoldfastStorage(store)), turns)
    ours.size = _size(folder)
    with holdfast.open(f"{folder}/both.db") as store:
        ours.lost = _lost(lambda id_: _snapshots(id_, HoldfastStorage(store)))
    files = f"{folder}/snapshots"
    snapshots = Measured("LocalFileStorage")
    _measure(snapshots, lambda id_: _snapshots(id_, LocalFileStorage(files)), turns)
    snapshots.size = _size(files)
    snapshots.lost = _lost(lambda id_: _snapshots(id_, LocalFileStorage(files)))
    files = f"{folder}/messages"
    messages = Measured("FileSessionManager (no history)")
    _measure(messages, lambda id_: FileSessionManager(id_, files), turns)
    messages.size = _size(files)
    messages.lost = _lost(lambda id_: FileSessionManager(id_, files))
    return ours, [snapshots, messages]


def _snapshots(session: str, storage) -> SnapshotSessionManager:
    return SnapshotSessionManager(session, storage=storage)


def _measure(measured: Measured, opened: Open, turns: int) -> None:
    numbers = count()
    manager = opened("talk")
    agent = _agent(manager)
    for _ in range(turns):
        with measured.turn():
            _turn(manager, agent, next(numbers), keeps_history=True)
    for _ in range(LOADS):
        manager = opened("talk")
        started = process_time()
        agent = _agent(manager)
        measured.loads.append(process_time() - started)
        assert len(agent.messages) == 2 * turns


def _agent(manager: SessionManager) -> Agent:
    return Agent(NoModel(), session_manager=manager, system_prompt=SYSTEM)


def _turn(
    manager: SessionManager, agent: Agent, number: int, *, keeps_history: bool
) -> None:
    """What is saved in a turn, without the model."""
    some = random.Random(number)
    for role in ("user", "assistant"):
        text = " ".join(f"{some.randrange(10**6)}" for _ in range(60))
        message = {"role": role, "content": [{"text": f"{number}: {text}"}]}
        agent.messages.append(message)
        manager.append_message(message, agent)
    if keeps_history and isinstance(manager, SnapshotSessionManager):
        asyncio.run(manager.save_snapshot(agent, is_latest=False))
    manager.sync_agent(agent)


def _lost(opened: Open) -> int:
    """How many turns of two agents on one session are not in it afterwards."""
    pairs = [(manager := opened("both"), _agent(manager)) for _ in range(2)]
    for number in range(UPDATES):
        try:
            _turn(*pairs[number % 2], number, keeps_history=False)
        except StorageError:
            manager = opened("both")
            pairs[number % 2] = manager, _agent(manager)
            _turn(*pairs[number % 2], number, keeps_history=False)
    kept = {
        message["content"][0]["text"].partition(":")[0]
        for message in _agent(opened("both")).messages
    }
    return UPDATES - len(kept)


def _size(folder: str) -> int:
    return sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file())


if __name__ == "__main__":
    main(measure)
