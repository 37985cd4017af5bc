"""Results that a caller may use at once or await.

LangGraph has a sync and an async class in place of this adapter's one: callers call
``store.setup()`` of the sync class, and await that of the async class.
"""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def _ended(result: T) -> Generator[None, None, T]:
    """An iterator that ends at once, for awaiting a result that is already there."""
    yield from ()
    return result


class Ready:
    """The result of a call that returns nothing."""

    def __await__(self) -> Generator[None, None, None]:
        return _ended(None)


class Count(int):
    """A number."""

    def __await__(self) -> Generator[None, None, int]:
        return _ended(int(self))


class Sweeping(Future[None]):
    """Ends when the sweeping of items stops; awaited, it returns itself."""

    def __await__(self) -> Generator[None, None, Future[None]]:
        return _ended(self)
