"""The changes inside a transaction of a session, until they are saved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from holdfast.adapters.openai_agents._changes import Items, StoredItems
from holdfast.adapters.openai_agents._paused_run import ResumedRun, SessionChange
from holdfast.backends import UNSET, Unset
from holdfast.operations.transcripts import (
    Summary,
    answers_of,
    calls_of,
    summary_after,
    summary_without,
)
from holdfast.operations.values import uuid7

# Reads the last items that are stored, or all.
Read = Callable[[int | None], Awaitable[Items]]


class PendingChanges:
    """Changes of a conversation on top of what is stored."""

    def __init__(self) -> None:
        self.is_cleared = False
        self.dropped: Items = []
        self.added: Items = []
        self.run: Mapping[str, Any] | Unset | None = UNSET
        self.metadata = b""
        # The summary after the transaction, if it replaced all items.
        self.summary: Summary | Unset | None = UNSET
        # The id of the checkpoint that will have all changes.
        self.id = uuid7()

    async def items(self, limit: int | None, read: Read) -> Items:
        """The last items, or all, as they will be after the transaction."""
        if limit is not None and 0 <= limit <= len(self.added):
            return self.added[len(self.added) - limit :]
        bounded = limit is not None and limit >= 0
        more = (limit or 0) - len(self.added) if bounded else None
        return [*await self._stored(more, read), *self.added]

    async def _stored(self, limit: int | None, read: Read) -> Items:
        if self.is_cleared:
            return []
        dropped = len(self.dropped)
        found = await read(None if limit is None else limit + dropped)
        return found[: len(found) - dropped]

    async def pop(self, read: Read) -> dict[str, Any] | None:
        """Drop the last item and return it."""
        if self.added:
            return self._taken_back(self.added.pop())
        found = await self._stored(1, read)
        if not found:
            return None
        self.dropped.insert(0, found[0])
        return found[0]

    def _taken_back(self, popped: dict[str, Any]) -> dict[str, Any]:
        """An item; the calls that were made before its removal are left behind."""
        if isinstance(self.summary, Summary):
            self.summary = self.summary.within(len(self.added))
        if calls_of(popped) or answers_of(popped):
            self.id = uuid7()
        return popped

    def clear(self) -> None:
        """Drop all items, and the run."""
        self.is_cleared, self.dropped, self.added, self.run = True, [], [], None
        self.summary, self.id = UNSET, uuid7()

    async def replace(self, items: Items, stored: StoredItems) -> None:
        """Drop all items for a summary of them."""
        before = self.summary_of(stored)
        removed = await self.items_of(stored)
        self.summary = summary_after(before, removed, items)
        self.is_cleared, self.dropped, self.added = True, [], items

    async def items_of(self, stored: StoredItems) -> Items:
        """All items as they will be after the transaction."""

        async def read(limit: int | None) -> Items:
            del limit  # it always returns all items
            return stored.items

        return await self.items(None, read)

    def summary_of(self, stored: StoredItems) -> Summary | None:
        """The summary after the transaction."""
        if not isinstance(self.summary, Unset):
            return self.summary
        removed = stored.items if self.is_cleared else self.dropped
        stay = len(stored.items) - len(removed)
        return summary_without(stored.summary, removed, stay)

    def change(self, resumes: ResumedRun | None) -> SessionChange:
        """All changes as one."""
        return SessionChange(
            dropped=None if self.is_cleared else tuple(self.dropped),
            added=self.added,
            resumes=resumes,
            run=self.run,
            summary=self.summary,
            metadata=self.metadata,
            id=self.id,
        )
