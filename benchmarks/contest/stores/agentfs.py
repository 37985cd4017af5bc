"""A key of AgentFS for every turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from benchmarks.contest.workload import Turn

# Named by a string, because AgentFS is not there when types are checked.
agentfs: Any = import_module("agentfs_sdk")

PREFIX = "turn:"


class KeysChat:
    """The messages of a turn under a key of their own, so that nothing is rewritten."""

    def __init__(self, path: str) -> None:
        self._loop = asyncio.new_event_loop()
        options = agentfs.AgentFSOptions(path=path)
        self._agent: Any = self._loop.run_until_complete(agentfs.AgentFS.open(options))

    def save(self, turn: Turn) -> None:
        """Set the key of the turn."""
        key = f"{PREFIX}{len(turn.messages):09}"
        self._loop.run_until_complete(self._agent.kv.set(key, turn.added))

    def load(self) -> Sequence[object]:
        """The values of all keys."""
        found = self._loop.run_until_complete(self._agent.kv.list(PREFIX))
        ordered = sorted(found, key=lambda item: item["key"])
        return [message for item in ordered for message in item["value"]]

    def last(self, count: int) -> Sequence[object]:
        """The end of all values: keys cannot be listed from the end."""
        return self.load()[-count:]

    def close(self) -> None:
        """Close the file."""
        self._loop.run_until_complete(self._agent.close())
        self._loop.close()
