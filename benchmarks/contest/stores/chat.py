"""What the benchmark asks of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from benchmarks.contest.workload import Turn


class Chat(Protocol):
    """A conversation that a store keeps; made with the path of a file or folder.

    The path need not exist. A chat may be opened again where another one was closed,
    or killed.
    """

    def save(self, turn: Turn) -> None:
        """Make a turn durable."""
        ...

    def load(self) -> Sequence[object]:
        """All messages."""
        ...

    def last(self, count: int) -> Sequence[object]:
        """The last messages, by the cheapest way that the store has."""
        ...

    def close(self) -> None:
        """Let go of the store, with nothing left in its log."""
        ...
