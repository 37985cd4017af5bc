"""The methods that the SDK's compaction calls on a session beside the public four.

`OpenAIResponsesCompactionSession` looks these methods up by name. For a session that
does not have them it clears the session and adds the remaining items, in two steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from agents import TResponseInputItem

from holdfast.adapters.openai_agents import _changes
from holdfast.adapters.openai_agents._changes import ConversationKey, Items, checked
from holdfast.adapters.openai_agents._paused_run import COMPACTION, SessionChange
from holdfast.adapters.openai_agents._runner import SessionRunner
from holdfast.operations.transcripts import Newest, Untouched, transcript_tail


class CompactionSnapshot:
    """The last items of a session; ``complete`` if there are no others."""

    def __init__(
        self,
        runner: SessionRunner,
        key: ConversationKey,
        found: Newest,
        expired: Callable[[Any], bool] | None,
    ) -> None:
        self._runner, self._key, self._expired = runner, key, expired
        self.items = cast("Items", found.messages)
        self._count = found.count

    @property
    def complete(self) -> bool:
        """True if these are all items of the session."""
        return len(self.items) == self._count

    async def replace_suffix(self, start: int, items: list[TResponseInputItem]) -> bool:
        """Replace the items from ``start`` on by others, in one checkpoint.

        False, without a change, if the stored session ends with other items by then.
        """
        expected = tuple(self.items[start:])
        if not expected:
            return False
        wanted = SessionChange(
            dropped=expected,
            at=self._count,
            added=checked(items),
            expired=self._expired,
            kind=COMPACTION,
        )
        try:
            await self._runner.save(_changes.change, self._key, wanted)
        except Untouched:
            return False
        return True


async def snapshot(
    runner: SessionRunner,
    key: ConversationKey,
    limit: int,
    expired: Callable[[Any], bool] | None,
) -> CompactionSnapshot:
    """The last items of a session now."""
    found = await runner.read(transcript_tail.newest, key.thread, limit)
    return CompactionSnapshot(runner, key, found, expired)
