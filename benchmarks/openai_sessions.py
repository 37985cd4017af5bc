"""The same conversation on Holdfast's session and on the SDK's: size, time, loading.

``python -m benchmarks.openai_sessions --turns 500``
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from agents import Agent, Runner, SQLiteSession, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message

import holdfast
from benchmarks.environment import environment
from benchmarks.workloads import ASSISTANT_SIZE, USER_SIZE, Writer
from holdfast.adapters.openai_agents import HoldfastSession

ID = "chat"
# So many turns stand for the beginning and for the end of a conversation.
SOME = 20


@dataclass
class Measured:
    """What a session took for a conversation; times in seconds."""

    name: str
    turns: list[float] = field(default_factory=list)
    adds: list[float] = field(default_factory=list)
    gets: list[float] = field(default_factory=list)
    pops: list[float] = field(default_factory=list)
    load: float = 0.0
    tail: float = 0.0
    size: int = 0

    def row(self) -> str:
        times = (_ends(self.turns), _ends(self.adds, 2), _ends(self.gets))
        columns = " ".join(f"{text:>16}" for text in times)
        ends = (median(self.pops), self.load, self.tail)
        rest = " ".join(f"{seconds * 1e3:>8.2f}" for seconds in ends)
        return f"{self.name:<28} {self.size / 1e6:>7.2f} MB {columns} {rest}"


def _ends(times: Sequence[float], each: int = 1) -> str:
    some = SOME * each
    first, last = median(times[:some]), median(times[-some:])
    return f"{first * 1e3:.2f} -> {last * 1e3:.2f}"


def timed(session: Any, name: str, times: list[float]) -> None:
    """Note how long each call of a method of a session takes."""
    method: Callable[..., Coroutine[Any, Any, Any]] = getattr(session, name)

    async def call(*arguments: Any, **options: Any) -> Any:
        start = time.perf_counter()
        result = await method(*arguments, **options)
        times.append(time.perf_counter() - start)
        return result

    setattr(session, name, call)


async def talk(measured: Measured, session: Any, turns: int) -> None:
    """A conversation with a session that is open, then a few items taken back."""
    writer = Writer(1)
    timed(session, "add_items", measured.adds)
    timed(session, "get_items", measured.gets)
    timed(session, "pop_item", measured.pops)
    for number in range(turns):
        answer = assistant_message(writer.text(ASSISTANT_SIZE), item_id=f"msg_{number}")
        agent = Agent(name="a", model=ScriptedModel([[answer]]))
        question = writer.text(USER_SIZE)
        start = time.perf_counter()
        await Runner.run(agent, question, session=session)
        measured.turns.append(time.perf_counter() - start)
    taken = [await session.pop_item() for _ in range(SOME)]
    await session.add_items(taken[::-1])


async def load(measured: Measured, session: Any, turns: int) -> None:
    """All items, and the last ten, read by a session that has just been opened."""
    start = time.perf_counter()
    tail = await session.get_items(10)
    measured.tail = time.perf_counter() - start
    start = time.perf_counter()
    items = await session.get_items()
    measured.load = time.perf_counter() - start
    assert (len(tail), len(items)) == (10, 2 * turns)


def ours(folder: str, turns: int, *, compress: bool, awaited: bool) -> Measured:
    """The conversation in a Holdfast store."""
    path = os.path.join(folder, f"holdfast-{compress}-{awaited}.db")
    about = [text for text, said in (("awaited", awaited), ("zstd", compress)) if said]
    measured = Measured(", ".join(["HoldfastSession", *about]))

    async def with_session(body: Any) -> None:
        if awaited:
            async with holdfast.open_async(path, compress=compress) as store:
                await body(measured, HoldfastSession(ID, store), turns)
        else:
            with holdfast.open(path, compress=compress) as blocking:
                await body(measured, HoldfastSession(ID, blocking), turns)

    asyncio.run(with_session(talk))
    measured.size = os.path.getsize(path)
    asyncio.run(with_session(load))
    return measured


def theirs(folder: str, turns: int) -> Measured:
    """The conversation in a file of the SDK's."""
    path = os.path.join(folder, "sdk.db")
    measured = Measured("SQLiteSession")
    for body in (talk, load):
        session = SQLiteSession(ID, path)
        asyncio.run(body(measured, session, turns))
        session.close()
        measured.size = os.path.getsize(path)
    return measured


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=500)
    turns = parser.parse_args().turns
    set_tracing_disabled(True)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in environment(folder).items():
            print(f"{name:<12} {text}")
        raw = turns * (USER_SIZE + ASSISTANT_SIZE)
        print(f"\n{turns} turns, {raw / 1e6:.2f} MB of text; milliseconds\n")
        heads = f"{'turn':>16} {'add_items':>16} {'get_items':>16}"
        print(f"{'':<28} {'file':>10} {heads} {'pop':>8} {'load':>8} {'last 10':>8}")
        print(theirs(folder, turns).row())
        for awaited in (False, True):
            print(ours(folder, turns, compress=False, awaited=awaited).row())
        print(ours(folder, turns, compress=True, awaited=False).row())
    return 0


if __name__ == "__main__":
    sys.exit(main())
