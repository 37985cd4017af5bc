"""A store with something for every interaction of the viewer to show."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from payday import EVENING, open_payday
from story import LONG, open_story

import holdfast
from holdfast.testing import FakeClock, ids
from support.snapshots import MemorySnapshot

DIALECTS = "weather"
FILES = "rewrite"
NIGHT = EVENING + 30 * 60 * 1_000_000


def open_everything(path: str) -> None:
    """Make the store at ``path``; equal in every run, down to times and ids."""
    open_story(path)
    open_payday(path)
    clock = FakeClock(EVENING + 10 * 60 * 1_000_000)
    options: Any = {"clock": clock, "new_id": ids("e-"), "durability": "normal"}
    with holdfast.open(path, **options) as store:
        _forks(store, clock)
        store.thread(DIALECTS).save({"messages": _in_every_dialect()}, kind="llm")
        _files(store)


def night(prefix: str) -> dict[str, Any]:
    """Options of a store that is opened later: its clock stands still."""
    return {"clock": FakeClock(NIGHT), "new_id": ids(prefix)}


def _forks(store: holdfast.Store, clock: FakeClock) -> None:
    """So many rows that the history has a minimap, in three lanes."""
    for shop in (4, 9):
        fork = store.thread(LONG).fork(f"again-{shop}", f"@{2 * shop}")
        for attempt in range(6):
            clock.advance(timedelta(seconds=20))
            said = {"role": "assistant", "content": f"Shop {shop}, look {attempt}."}
            fork.append(messages=[said])


def _files(store: holdfast.Store) -> None:
    """Files that a second checkpoint changed, added and removed."""
    thread = store.thread(FILES)
    before = {"a.py": b"one\ntwo\n", "old": b"x"}
    thread.save({"round": 1}, kind="input", files=MemorySnapshot(before))
    after = {"a.py": b"one\n2 < 3\n", "b.bin": b"\0"}
    thread.save({"round": 2}, kind="edit", files=MemorySnapshot(after))


def _in_every_dialect() -> list[dict[str, Any]]:
    """The same call in five formats, each with a text that says which one it is."""
    asked: dict[str, Any] = {"city": "Oslo"}
    text = '{"city": "Oslo"}'
    function = {"name": "chat_weather", "arguments": text}
    call = {"id": "c1", "type": "function", "function": function}
    use = {"type": "tool_use", "id": "c3", "name": "anthropic_weather", "input": asked}
    answer = {"type": "tool_result", "tool_use_id": "c3", "content": "3 degrees"}
    item = {"type": "function_call", "call_id": "c2", "name": "responses_weather"}
    output = {"type": "function_call_output", "call_id": "c2", "output": "2 degrees"}
    named = {"toolUseId": "c4", "name": "strands_weather", "input": asked}
    told = {"toolUseId": "c4", "status": "success", "content": [{"text": "4 degrees"}]}
    adk = {"id": "c5", "name": "adk_weather", "args": asked}
    said = {"id": "c5", "name": "adk_weather", "response": {"result": "5 degrees"}}
    return [
        {"role": "user", "content": "How is the weather in Oslo?"},
        {"role": "assistant", "content": "In Chat.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "1 degree"},
        {**item, "arguments": text},
        output,
        {"role": "assistant", "content": [{"type": "text", "text": "In blocks."}, use]},
        {"role": "user", "content": [answer]},
        {"role": "assistant", "content": [{"text": "In parts."}, {"toolUse": named}]},
        {"role": "user", "content": [{"toolResult": told}]},
        _event("guide", "model", {"text": "In events."}, {"function_call": adk}),
        _event("guide", "user", {"function_response": said}),
    ]


def _event(author: str, role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    """A message of Google's ADK."""
    content = {"role": role, "parts": list(parts)}
    actions: dict[str, Any] = {"state_delta": {}, "artifact_delta": {}}
    return {
        "content": content,
        "invocation_id": "e-1",
        "author": author,
        "actions": actions,
        "id": "x",
        "timestamp": 1.5,
    }
