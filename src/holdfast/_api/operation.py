"""Types of operations, for type checkers only: making these types takes long."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from holdfast._engine.context import Context
from holdfast._values.records import Page


class OfThread(Protocol):
    """A value that belongs to a thread."""

    @property
    def thread(self) -> str:
        """The thread's name."""
        ...


P = ParamSpec("P")
T = TypeVar("T")
Named = TypeVar("Named", bound=str | OfThread)
# Starts a coroutine; its first parameter is the context.
Operation: TypeAlias = Callable[Concatenate[Context, P], Coroutine[Any, Any, T]]
# An operation that takes a cursor, a limit and for how many seconds it may wait.
Polled: TypeAlias = Operation[[int, int, float], Page[T]]
