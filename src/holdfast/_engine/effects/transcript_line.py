"""The line of a conversation, in which a session may have made or taken back calls.

Items of a session can be popped and cleared, which is no rewind of its thread: the
checkpoint that had a call stays an ancestor. The effect of such a call was left behind
all the same. A call that a compaction has summarized was not.
"""

from __future__ import annotations

from holdfast._engine.context import Context
from holdfast._engine.effects.line import Line, PlacedCall
from holdfast._engine.threads.drafts import read_values_of
from holdfast._messages.item_calls import (
    PAUSED_RUN,
    SUMMARY,
    ItemCalls,
    Summary,
    item_calls,
)
from holdfast._messages.loose import fields_of, parts_of
from holdfast._port import CheckpointKey
from holdfast._values.records import Checkpoint


class TranscriptLine(Line):
    """The line that ends at a checkpoint of a conversation.

    The items decide about the calls that a session made, and with ``by_items`` about
    all. ``calls`` are those in the items, if they are known already.
    """

    def __init__(
        self,
        family: int | None,
        head: Checkpoint | None,
        next_id: str | None,
        *,
        by_items: bool,
        calls: ItemCalls | None = None,
        known: dict[str, bool] | None = None,
    ) -> None:
        super().__init__(family, head, next_id, known)
        self._by_items, self._calls = by_items, calls

    async def has(self, context: Context, call: PlacedCall) -> bool:
        """True if the call is on the line, and was not taken back."""
        key, anchor = call.key, call.checkpoint
        if anchor is None or anchor == self.next_id:
            return True
        if not await self.holds(context, anchor):
            return False
        if not (call.in_items or self._by_items):
            return True
        if self._calls is None:
            assert self.head is not None
            self._calls = await _calls_at(context, self.head, PAUSED_RUN)
        now = self._calls
        return key in now.answered or await self._is_open(context, now, key, anchor)

    async def _is_open(
        self, context: Context, now: ItemCalls, key: str, anchor: str
    ) -> bool:
        """True if a call without a result here had none in its checkpoint either."""
        assert self.head is not None
        [found] = await context.backend.read([CheckpointKey(self.head.family, anchor)])
        if found is None:
            # It may have had one, unless a run still waits for it or it is not saved.
            return key in now.awaited or await self.is_ahead(context, anchor)
        before, open_ = await _calls_at(context, found), now.last | now.awaited
        if key in before.made:
            return key in open_ and key not in before.answered
        # Made by an agent that is itself a tool: the call of that agent is the last.
        host = before.made[-1:]
        return bool(host) and host[0] in now.answered | open_


async def _calls_at(context: Context, checkpoint: Checkpoint, *more: str) -> ItemCalls:
    """The calls of a checkpoint; with `PAUSED_RUN` also what its run waits for."""
    names = ("messages", SUMMARY, *more)
    values = await read_values_of(context, checkpoint, *names)
    waiting = parts_of(fields_of(values.get(PAUSED_RUN)).get("calls"))
    summary = Summary.of(values.get(SUMMARY))
    return item_calls(parts_of(values.get("messages")), summary, waiting)
