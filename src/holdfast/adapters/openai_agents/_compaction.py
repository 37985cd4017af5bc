"""What the SDK's compaction asks of a session beyond the four methods.

`OpenAIResponsesCompactionSession` finds these by name, and does without where they are
missing: it then clears the session and adds what is left, in two steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from agents import TResponseInputItem

from holdfast._engine.records import transcript_tail
from holdfast._engine.records.transcript_tail import Newest, Untouched
from holdfast.adapters.openai_agents import _changes
from holdfast.adapters.openai_agents._changes import Items, Place, checked
from holdfast.adapters.openai_agents._paused import Change
from holdfast.adapters.openai_agents._runner import Runner


class Snapshot:
    """The last items of a session; ``complete`` if there are no others."""

    def __init__(
        self,
        runner: Runner,
        place: Place,
        found: Newest,
        expired: Callable[[Any], bool] | None,
    ) -> None:
        self._runner, self._place, self._expired = runner, place, expired
        self.items = cast("Items", found.messages)
        self._count = found.count

    @property
    def complete(self) -> bool:
        """Whether these are all items there are."""
        return len(self.items) == self._count

    async def replace_suffix(self, start: int, items: list[TResponseInputItem]) -> bool:
        """Put others in place of the items from one on, all in one checkpoint.

        False, and nothing is changed, if the session does not end with them any more.
        """
        expected = tuple(self.items[start:])
        if not expected:
            return False
        wanted = Change(
            dropped=expected,
            at=self._count,
            added=checked(items),
            expired=self._expired,
            kind="compaction",
        )
        try:
            await self._runner.save(_changes.change, self._place, wanted)
        except Untouched:
            return False
        return True


async def snapshot(
    runner: Runner,
    place: Place,
    limit: int,
    expired: Callable[[Any], bool] | None,
) -> Snapshot:
    """The last items as they are now."""
    found = await runner.read(transcript_tail.newest, place.thread, limit)
    return Snapshot(runner, place, found, expired)
