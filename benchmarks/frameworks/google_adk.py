"""Sessions of Google's ADK: ours in a file, beside its own SQLite service."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

from google.adk.events import Event, EventActions
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from benchmarks.frameworks.measured import Measured, main
from holdfast.adapters.google_adk import HoldfastSessionService

WHERE = {"app_name": "app", "user_id": "ann", "session_id": "s1"}
LOADS = 20
# Each a pair of updates by two writers that have loaded the same session.
ROUNDS = 50

Service = HoldfastSessionService | SqliteSessionService


def event(author: str, part: types.Part, **state: object) -> Event:
    role = "user" if author == "user" else "model"
    return Event(
        author=author,
        invocation_id="e-0123456789",
        content=types.Content(role=role, parts=[part]),
        actions=EventActions(state_delta=state),
    )


def turn(number: int) -> list[Event]:
    """A question, a call with its result, and an answer: 1.5 kB of text."""
    call = types.FunctionCall(id=f"c{number}", name="look", args={"n": number})
    result = types.FunctionResponse(
        id=f"c{number}", name="look", response={"rows": f"{number} " * 60}
    )
    return [
        event("user", types.Part(text=f"What about {number}? " * 10)),
        event("guide", types.Part(function_call=call)),
        event("guide", types.Part(function_response=result), n=number),
        event("guide", types.Part(text=f"It is {number}, and so on. " * 40)),
    ]


async def talk(
    open_service: Callable[[], Service], measured: Measured, turns: int
) -> None:
    """A conversation, and loads of it with a service that is opened anew."""
    service = open_service()
    session = await service.create_session(**WHERE)
    for number in range(turns):
        events = turn(number)
        with measured.turn():
            for one in events:
                await service.append_event(session, one)
    await service.close()
    service = open_service()
    for _ in range(LOADS):
        began = process_time()
        await service.get_session(**WHERE)
        measured.loads.append(process_time() - began)
    await service.close()


async def lost(service: Service) -> int:
    """Of a hundred updates, those that were not refused and are gone."""
    where = {**WHERE, "session_id": "race"}
    await service.create_session(**where)
    kept = 0
    for _ in range(ROUNDS):
        pair = [await service.get_session(**where) for _ in range(2)]
        told = [
            event(str(who), types.Part(text="x"), n=session.state.get("n", 0) + 1)
            for who, session in enumerate(pair)
        ]
        appended = map(service.append_event, pair, told)
        ended = await asyncio.gather(*appended, return_exceptions=True)
        kept += sum(isinstance(one, Event) for one in ended)
    last = await service.get_session(**where)
    await service.close()
    return kept - last.state["n"]


async def measured_of(name: str, kind: Any, folder: str, turns: int) -> Measured:
    found = Measured(name)
    places = [os.path.join(folder, f"{kind.__name__}{n}", "agents.db") for n in (1, 2)]
    for path in places:
        os.makedirs(os.path.dirname(path))
    await talk(lambda: kind(places[0]), found, turns)
    found.size = sum(p.stat().st_size for p in Path(places[0]).parent.glob("*"))
    found.lost = await lost(kind(places[1]))
    return found


def measure(folder: str, turns: int) -> tuple[Measured, list[Measured]]:
    """The same conversation with both services."""
    ours = asyncio.run(measured_of("Holdfast", HoldfastSessionService, folder, turns))
    theirs = asyncio.run(
        measured_of("SqliteSessionService", SqliteSessionService, folder, turns)
    )
    return ours, [theirs]


if __name__ == "__main__":
    main(measure)
