"""The line: the chain of checkpoints from a point back to the first one.

With each merge on it, a line also has the line of what was merged. An effect belongs to
the first checkpoint whose state has its call, its *anchor*. It is on a line if the
anchor is, and otherwise was left behind. `lines` has which threads can lose a call in
other ways as well.
"""

from __future__ import annotations

from typing import Protocol

from holdfast._engine.context import Context
from holdfast._engine.threads.anchors import successors
from holdfast._engine.threads.merge_entries import merged_into
from holdfast._port import Ancestors, CheckpointKey
from holdfast._values.records import Checkpoint


class PlacedCall(Protocol):
    """A call with its place in a journal; ``checkpoint`` is its anchor.

    ``in_items`` means that it was made in the items of a session.
    """

    @property
    def thread(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def checkpoint(self) -> str | None: ...
    @property
    def in_items(self) -> bool: ...


class Line:
    """The line that ends at a checkpoint, and the id that is saved next on it.

    Its answers about an anchor stay true while the line only grows, so they are kept.
    """

    def __init__(
        self,
        family: int | None,
        head: Checkpoint | None,
        next_id: str | None = None,
        known: dict[str, bool] | None = None,
    ) -> None:
        self.family, self.head, self.next_id = family, head, next_id
        self._known: dict[str, bool] = {} if known is None else known
        # The ends of the lines that were merged; looked up for the first anchor that is
        # not on the chain of parents.
        self._merged: list[Checkpoint] | None = None

    async def has(self, context: Context, call: PlacedCall) -> bool:
        """True if the call is on the line.

        Some lines can lose a call without leaving its checkpoint.
        """
        return await self.holds(context, call.checkpoint)

    async def holds(self, context: Context, anchor: str | None) -> bool:
        """True if the anchor is on the line; calls of older versions have none."""
        if anchor is None or anchor == self.next_id:
            return True
        if anchor not in self._known:
            is_here = await self._has_saved(context, anchor)
            self._known[anchor] = is_here or await self.follows(context, anchor)
        return self._known[anchor]

    async def is_ahead(self, context: Context, anchor: str) -> bool:
        """True if the next save will have the calls of the anchor."""
        if self.next_id is None or self.family is None:
            return False
        if anchor == self.next_id:
            return True
        return self.next_id in await successors(context, self.family, anchor)

    async def follows(self, context: Context, anchor: str) -> bool:
        """True if the line has a checkpoint that has the calls of the other one."""
        if self.family is None:
            return False
        later = await successors(context, self.family, anchor)
        if self.next_id in later:
            return True
        # The last one is the likeliest.
        for id_ in reversed(later):
            if await self._has_saved(context, id_):
                return True
        return False

    async def _has_saved(self, context: Context, id_: str) -> bool:
        """True if the checkpoint is on the line, or on one that was merged into it."""
        head = self.head
        if head is not None and await self._find(context, head, id_):
            return True
        return await self._has_merged(context, id_)

    async def _has_merged(self, context: Context, anchor: str) -> bool:
        """True if the anchor is on a line that was merged into this one."""
        if self.head is None:
            return False
        if self._merged is None:
            self._merged = await merged_into(context, self.head)
        for end in self._merged:
            if await self._find(context, end, anchor):
                return True
        return False

    async def _find(self, context: Context, head: Checkpoint, anchor: str) -> bool:
        if anchor == head.id:
            return True
        [found] = await context.backend.read([CheckpointKey(head.family, anchor)])
        if found is None or found.step >= head.step:
            return False
        query = Ancestors(start=head, from_step=found.step, down_to_step=found.step)
        return [c.id for c in await context.backend.scan(query)] == [anchor]
