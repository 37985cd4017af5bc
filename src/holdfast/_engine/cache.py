"""The heads this store saved or loaded last, with their bytes, within a budget.

An entry is taken out while it is used: whoever changes its bytes in place is their
only owner, and a rival reads from the backend instead.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from holdfast._values.manifest import Manifest
from holdfast._values.records import Checkpoint
from holdfast._values.rope import Body

ENTRY_COST = 2048


class Known(msgspec.Struct):
    """A checkpoint with its manifest and as many of its bodies as are in memory."""

    head: Checkpoint
    manifest: Manifest
    bodies: dict[str, Body] = msgspec.field(default_factory=dict[str, Body])

    @property
    def cost(self) -> int:
        """About how many bytes of memory this takes."""
        return ENTRY_COST + sum(len(body.text) for body in self.bodies.values())


class Cache:
    """Least recently used entries go when the budget is spent."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._spent = 0
        self._known: OrderedDict[str, tuple[Known, int]] = OrderedDict()

    def take(self, thread: str) -> Known | None:
        """What is known of a thread's head, no longer in the cache."""
        entry = self._known.pop(thread, None)
        if entry is None:
            return None
        known, cost = entry
        self._spent -= cost
        return known

    def give(self, thread: str, known: Known) -> None:
        """Keep this for the next operation on the thread."""
        self.take(thread)
        cost = known.cost
        if cost > self._budget:
            return
        self._known[thread] = known, cost
        self._spent += cost
        while self._spent > self._budget:
            try:
                _, (_, cost) = self._known.popitem(last=False)
            except KeyError:
                return
            self._spent -= cost

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()
        self._spent = 0
