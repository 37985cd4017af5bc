"""The same conversation on Holdfast's session and on the SDK's: size, time, loading."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeAlias

from agents import Agent, Runner, SQLiteSession, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message

import holdfast
from benchmarks.contest.units import volume
from benchmarks.contest.workload import ASSISTANT_SIZE, USER_SIZE, Writer
from benchmarks.measure import Bench
from benchmarks.report import Row, times
from holdfast.adapters.openai_agents import HoldfastSession

ID = "chat"
# So many turns stand for the beginning and for the end of a conversation.
SOME = 20
# Gets what is measured, an open session and the number of turns.
Body: TypeAlias = Callable[["Measured", Any, int], Coroutine[Any, Any, None]]


@dataclass
class Measured:
    """What a session took for a conversation; times in seconds."""

    name: str
    turns: list[float] = field(default_factory=list)
    adds: list[float] = field(default_factory=list)
    gets: list[float] = field(default_factory=list)
    pops: list[float] = field(default_factory=list)
    loads: list[float] = field(default_factory=list)
    tails: list[float] = field(default_factory=list)
    size: int = 0


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
    """All items, and the last ten, read by a session that has just been opened.

    In processor time: nothing is waited for.
    """
    start = time.process_time()
    tail = await session.get_items(10)
    measured.tails.append(time.process_time() - start)
    start = time.process_time()
    items = await session.get_items()
    measured.loads.append(time.process_time() - start)
    assert (len(tail), len(items)) == (10, 2 * turns)


class Ours:
    """The conversation in a Holdfast store."""

    def __init__(self, folder: str, *, compress: bool, awaited: bool) -> None:
        self._path = os.path.join(folder, f"holdfast-{compress}-{awaited}.db")
        self._compress, self._awaited = compress, awaited
        options = (("awaited", awaited), ("zstd", compress))
        about = [text for text, said in options if said]
        self.measured = Measured(", ".join(["HoldfastSession", *about]))

    def run(self, body: Body, turns: int) -> None:
        """Do something with a session that is opened for it."""
        asyncio.run(self._with_session(body, turns))
        self.measured.size = os.path.getsize(self._path)

    async def _with_session(self, body: Body, turns: int) -> None:
        path, compress = self._path, self._compress
        if self._awaited:
            async with holdfast.open_async(path, compress=compress) as store:
                await body(self.measured, HoldfastSession(ID, store), turns)
        else:
            with holdfast.open(path, compress=compress) as blocking:
                await body(self.measured, HoldfastSession(ID, blocking), turns)


class Theirs:
    """The conversation in a file of the SDK's."""

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, "sdk.db")
        self.measured = Measured("SQLiteSession")

    def run(self, body: Body, turns: int) -> None:
        """As `Ours.run`."""
        session = SQLiteSession(ID, self._path)
        asyncio.run(body(self.measured, session, turns))
        session.close()
        self.measured.size = os.path.getsize(self._path)


def openai_sessions(bench: Bench) -> None:
    """A conversation with each session, every turn durable; then loads, in turns."""
    turns = bench.amount(500, 60)
    set_tracing_disabled(True)
    folder = str(bench.folder)
    theirs = Theirs(folder)
    ours = [
        Ours(folder, compress=compress, awaited=awaited)
        for awaited, compress in ((False, False), (True, False), (False, True))
    ]
    sessions: list[Ours | Theirs] = [theirs, *ours]
    for session in sessions:
        session.run(talk, turns)
    for _ in range(SOME):
        for session in sessions:
            session.run(load, turns)
        sessions.reverse()
    for session in ours:
        _compare(bench, session.measured, theirs.measured)


def _compare(bench: Bench, ours: Measured, sdk: Measured) -> None:
    about = f"OpenAI Agents, {len(sdk.turns)} turns, {ours.name}"
    sizes = f"{volume(ours.size)}; SQLiteSession {volume(sdk.size)}"
    bench.rows.append(Row(f"{about}: file", sizes, ours.size / sdk.size))
    pairs = {
        "last turns": (median(ours.turns[-SOME:]), median(sdk.turns[-SOME:])),
        "load": (median(ours.loads), median(sdk.loads)),
        "last ten items": (median(ours.tails), median(sdk.tails)),
    }
    for what, (one, other) in pairs.items():
        measured = times(one, other, "SQLiteSession")
        limit = None if what == "last turns" else 1.0
        bench.rows.append(Row(f"{about}: {what}", measured, one / other, limit))
