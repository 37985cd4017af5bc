"""The items of a turn added to a session of the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from benchmarks.contest.workload import Turn
from holdfast.adapters.openai_agents import HoldfastSession

ID = "chat"


class SessionChat:
    """One session, awaited in an event loop of its own."""

    def __init__(self, opened: Callable[[], Any]) -> None:
        self._loop = asyncio.new_event_loop()
        self._session = opened()

    def save(self, turn: Turn) -> None:
        """Add the items."""
        self._loop.run_until_complete(self._session.add_items(turn.added))

    def load(self) -> Sequence[object]:
        """All items."""
        found: list[object] = self._loop.run_until_complete(self._session.get_items())
        return found

    def last(self, count: int) -> Sequence[object]:
        """The last items, which sessions read by themselves."""
        found: list[object] = self._loop.run_until_complete(
            self._session.get_items(count)
        )
        return found

    def close(self) -> None:
        """Close the session, and the threads that it worked in."""
        self._session.close()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


def sqlite_session(path: str) -> SessionChat:
    """The SDK's own session."""
    return SessionChat(lambda: import_module("agents").SQLiteSession(ID, path))


def advanced_session(path: str) -> SessionChat:
    """The SDK's own session with branches."""
    extensions = import_module("agents.extensions.memory")
    return SessionChat(
        lambda: extensions.AdvancedSQLiteSession(
            session_id=ID, db_path=path, create_tables=True
        )
    )


def holdfast_session(path: str) -> SessionChat:
    """Our session, as it opens a file by itself."""
    return SessionChat(lambda: HoldfastSession(ID, path))
