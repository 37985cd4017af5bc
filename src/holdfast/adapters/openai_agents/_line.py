"""The line of a session: which of its calls the model still knows of.

Items of a session can be popped and cleared, which is no rewind of its thread: the
checkpoint that had a call stays an ancestor. The effect of such a call was left behind
all the same. A call that a compaction has summarized was not.
"""

from __future__ import annotations

from holdfast._engine.context import Context
from holdfast._engine.effects.line import Line
from holdfast._engine.threads.drafts import read_values_of
from holdfast._port import CheckpointKey
from holdfast._values.records import Checkpoint
from holdfast.adapters.openai_agents._item_calls import (
    SUMMARY,
    ItemCalls,
    Summary,
    item_calls,
)


class SessionLine(Line):
    """The line that ends at the head of a session with some calls in its items.

    ``waiting`` are calls in the items that have no result and will get one.
    """

    def __init__(
        self,
        family: int | None,
        head: Checkpoint | None,
        next_id: str,
        calls: ItemCalls,
        waiting: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(family, head, next_id)
        self._answered = calls.answered
        self._waiting = calls.last | (waiting & frozenset(calls.made))

    async def has(
        self, context: Context, thread: str, key: str, anchor: str | None
    ) -> bool:
        """Whether a call is on the line, and was not taken back."""
        del thread  # all calls of a session are in its own
        if anchor is None or anchor == self.next_id:
            return True
        if not await self.holds(context, anchor):
            return False
        return key in self._answered or await self._is_open(context, key, anchor)

    async def _is_open(self, context: Context, key: str, anchor: str) -> bool:
        """Whether a call without a result here had none in its checkpoint either."""
        before = await self._calls_at(context, anchor)
        if before is None or key in before.made:
            was_answered = before is not None and key in before.answered
            return key in self._waiting and not was_answered
        # Made by an agent that is itself a tool: the call of that agent is the last.
        host = before.made[-1:]
        return bool(host) and host[0] in self._answered | self._waiting

    async def _calls_at(self, context: Context, id_: str) -> ItemCalls | None:
        assert self.head is not None
        [found] = await context.backend.read([CheckpointKey(self.head.family, id_)])
        if found is None:
            return None
        values = await read_values_of(context, found, "messages", SUMMARY)
        summary = Summary.of(values.get(SUMMARY))
        return item_calls(values.get("messages", ()), summary)
