"""The same conversation on Holdfast's session and on the SDK's: size, time, loading."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from agents import Agent, Runner, SQLiteSession, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message

import holdfast
from benchmarks.measure import Bench
from benchmarks.report import Row, times
from holdfast.adapters.openai_agents import HoldfastSession
from holdfast.bench.units import volume
from holdfast.bench.workload import ASSISTANT_SIZE, USER_SIZE, Writer

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
    for _ in range(SOME):
        asyncio.run(with_session(load))
    return measured


def theirs(folder: str, turns: int) -> Measured:
    """The conversation in a file of the SDK's."""
    path = os.path.join(folder, "sdk.db")
    measured = Measured("SQLiteSession")
    for body in (talk, *([load] * SOME)):
        session = SQLiteSession(ID, path)
        asyncio.run(body(measured, session, turns))
        session.close()
        measured.size = os.path.getsize(path)
    return measured


def openai_sessions(bench: Bench) -> None:
    """A conversation with each session, every turn durable."""
    turns = bench.amount(500, 60)
    set_tracing_disabled(True)
    folder = str(bench.folder)
    sdk = theirs(folder, turns)
    for awaited, compress in ((False, False), (True, False), (False, True)):
        _compare(bench, ours(folder, turns, compress=compress, awaited=awaited), sdk)


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
