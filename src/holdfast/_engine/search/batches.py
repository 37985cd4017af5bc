"""Dividing a sequence into batches of about a size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def batches(
    items: Sequence[T], size_of: Callable[[T], int], size: int
) -> Iterator[Sequence[T]]:
    """The items in batches that each end with the first that makes it large enough."""
    start = total = 0
    for position, item in enumerate(items, 1):
        total += size_of(item)
        if total >= size:
            yield items[start:position]
            start, total = position, 0
    if start < len(items):
        yield items[start:]
