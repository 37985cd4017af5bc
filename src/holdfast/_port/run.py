"""Running an operation over a blocking backend, without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(operation: Coroutine[Any, Any, T]) -> T:
    """The result of an operation over a blocking backend, without an event loop."""
    try:
        operation.send(None)
    except StopIteration as finished:
        result: T = finished.value
        return result
    operation.close()
    raise RuntimeError("an operation suspended: its backend is not a blocking one")
