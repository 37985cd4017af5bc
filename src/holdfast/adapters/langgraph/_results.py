"""Results that a caller may use at once or await.

LangGraph has a sync and an async class where this adapter has one: ``store.setup()`` of
the one is called, that of the other awaited.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def _ended(result: T) -> Generator[None, None, T]:
    """What awaiting a result gives that is there already."""
    yield from ()
    return result


class Ready:
    """The result of a call that has nothing to give."""

    def __await__(self) -> Generator[None, None, None]:
        return _ended(None)


class Count(int):
    """A number."""

    def __await__(self) -> Generator[None, None, int]:
        return _ended(int(self))


class Sweeping(Future[None]):
    """Ends when items are no longer swept; awaited, it gives itself."""

    def __await__(self) -> Generator[None, None, Future[None]]:
        return _ended(self)
