"""Sessions of the Claude Agent SDK, beside the store that the SDK ships.

That one keeps everything in memory; its size is that of the entries as JSON lines,
which is also what Claude writes to its own files.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from pathlib import Path
from typing import Any

from claude_agent_sdk import InMemorySessionStore, SessionKey, SessionStore

from benchmarks.frameworks.measured import Measured, main
from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore

KEY: SessionKey = {"project_key": "-work-atlas", "session_id": str(uuid.uuid4())}
LOADS, WRITES = 10, 50
WORDS = [
    "build",
    "header",
    "compiler",
    "the",
    "a",
    "of",
    "fails",
    "why",
    "green",
    "run",
]


class Transcript:
    """Entries as Claude writes them: a prompt, a call, its result, a reply, a cost."""

    def __init__(self) -> None:
        self.random = random.Random(7)
        self.last: str | None = None

    def turn(self, number: int) -> list[Any]:
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}"}
        return [
            self._entry("user", self._text(100)),
            self._entry("assistant", [{"type": "text", "text": self._text(80)}, call]),
            self._entry("user", [{**result, "content": self._text(600)}]),
            self._entry("assistant", [{"type": "text", "text": self._text(500)}]),
            {"type": "cost-state", "sessionId": KEY["session_id"], "turns": number},
        ]

    def _text(self, size: int) -> str:
        return " ".join(self.random.choices(WORDS, k=size // 5))[:size]

    def _entry(self, role: str, content: object) -> dict[str, Any]:
        before, self.last = self.last, str(uuid.UUID(int=self.random.getrandbits(128)))
        return {
            "parentUuid": before,
            "type": role,
            "message": {"role": role, "content": content},
            "uuid": self.last,
            "sessionId": KEY["session_id"],
            "timestamp": "2026-11-16T10:00:00.000Z",
        }


async def measured(name: str, store: SessionStore, turns: int) -> Measured:
    """What a conversation took; processor time for loads."""
    found, transcript = Measured(name), Transcript()
    for number in range(turns):
        entries = transcript.turn(number)
        with found.turn():
            await store.append(KEY, entries)
    for _ in range(LOADS):
        started = time.process_time()
        loaded = await store.load(KEY)
        found.loads.append(time.process_time() - started)
        assert loaded is not None
        assert len(loaded) == 5 * turns
    return found


async def lost(path: str) -> int:
    """How many of a hundred entries of two writers are gone afterwards."""
    key: SessionKey = {**KEY, "session_id": str(uuid.uuid4())}
    stores = [HoldfastSessionStore(path), HoldfastSessionStore(path)]

    async def write(store: SessionStore) -> None:
        for _ in range(WRITES):
            await store.append(key, [{"type": "user", "uuid": str(uuid.uuid4())}])

    await asyncio.gather(*map(write, stores))
    kept = await stores[0].load(key)
    for store in stores:
        await store.close()
    assert kept is not None
    return 2 * WRITES - len(kept)


async def compared(folder: str, turns: int) -> tuple[Measured, list[Measured]]:
    path = Path(folder) / "agents.db"
    async with HoldfastSessionStore(path) as store:
        ours = await measured("Holdfast", store, turns)
    ours.size = path.stat().st_size
    ours.lost = await lost(str(path))
    memory = InMemorySessionStore()
    theirs = await measured("InMemorySessionStore", memory, turns)
    lines = [json.dumps(entry) for entry in memory.get_entries(KEY)]
    theirs.size = sum(len(line) + 1 for line in lines)
    return ours, [theirs]


def measure(folder: str, turns: int) -> tuple[Measured, list[Measured]]:
    """Our store, and the one that the SDK ships."""
    return asyncio.run(compared(folder, turns))


if __name__ == "__main__":
    main(measure)
