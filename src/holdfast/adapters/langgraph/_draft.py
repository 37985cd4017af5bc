"""A LangGraph checkpoint as the next state of a thread.

Every channel is a value of the state. Only changed channels are encoded; the others are
shared with the parent without reading them. The rest of a LangGraph checkpoint, its
*frame*, is in every state and therefore short: the names of channels are written once,
and elsewhere their indexes are used.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from langgraph.checkpoint.base import ChannelVersions, Checkpoint

from holdfast.adapters.langgraph._namespace import channel_name
from holdfast.adapters.langgraph._types import Types
from holdfast.operations import Context, OpenedCheckpoint
from holdfast.operations.graphs import FRAME, PARENT
from holdfast.operations.threads import (
    Basis,
    NextState,
    StateTexts,
    put_text,
    read_values,
)
from holdfast.operations.values import Blocks, codec

VERSIONS, SEEN, UPDATED = "versions", "seen", "updated"

_SHORT = {
    "channel_versions": VERSIONS,
    "versions_seen": SEEN,
    "updated_channels": UPDATED,
}
_ELSEWHERE = frozenset({"id", "channel_values", *_SHORT})

_OURS = frozenset({VERSIONS, SEEN, UPDATED})

_ChannelIndex = int | str


class PutDraft:
    """A checkpoint to save, with the parent that LangGraph gives it."""

    def __init__(
        self,
        types: Types,
        checkpoint: Checkpoint,
        new_versions: ChannelVersions,
        parent: str | None,
    ) -> None:
        self._types = types
        self._versions: Mapping[str, Any] = checkpoint["channel_versions"]
        self._values = {
            channel_name(channel): value
            for channel, value in checkpoint["channel_values"].items()
        }
        self._kept = {
            channel_name(channel): channel
            for channel in checkpoint["channel_values"].keys() - new_versions.keys()
        }
        self._frame = framed(checkpoint)
        self._parent = parent
        self._texts: dict[str, bytes] = {}

    async def plan(
        self, context: Context, parent: OpenedCheckpoint | None, blocks: Blocks
    ) -> NextState:
        plan, place = NextState(is_mapping=True), Basis(context, parent, blocks)
        kept = await self._unchanged(context, parent) if parent else ()
        for name in self._values:
            if parent is not None and name in kept:
                plan.values[name] = parent.manifest.values[name]
                if name in parent.bodies:
                    plan.bodies[name] = parent.bodies[name]
            else:
                await put_text(plan, place, name, self._text(name))
        above = parent.head.id if parent else None
        frame = self._types.tabled(self._frame, "checkpoint")
        await put_text(plan, place, FRAME, codec.encode(frame, "checkpoint"))
        # Nearly always LangGraph's parent is also the parent in the store.
        if above != self._parent:
            await put_text(plan, place, PARENT, codec.encode(self._parent, "parent"))
        return plan

    def matches(self, stored: StateTexts, before: StateTexts | None) -> bool:
        del before  # LangGraph passes unchanged channels too
        if stored.values.keys() - {PARENT} != {*self._values, FRAME}:
            return False
        frame = codec.decode(stored.values[FRAME])
        return frame == self._types.tabled(self._frame, "checkpoint") and all(
            self._types.is_text_of(value, stored.values[name])
            for name, value in self._values.items()
        )

    async def _unchanged(
        self, context: Context, parent: OpenedCheckpoint
    ) -> Collection[str]:
        """The values that are unchanged since the parent."""
        found = await read_values(context, parent, [FRAME])
        frame = cast("Mapping[str, Any]", found.get(FRAME, {}))
        before: Mapping[str, Any] = frame.get(VERSIONS, {})
        return [
            name
            for name, channel in self._kept.items()
            if name in parent.manifest.values
            and channel in before
            and before[channel] == self._versions.get(channel)
        ]

    def _text(self, name: str) -> bytes:
        if name not in self._texts:
            path = f"channel_values[{name!r}]"
            self._texts[name] = self._types.encode(self._values[name], path)
        return self._texts[name]


# --- frames ---------------------------------------------------------------------------


def framed(checkpoint: Mapping[str, Any]) -> dict[str, Any]:
    """A checkpoint without its id and the values of its channels."""
    versions: Mapping[str, Any] = checkpoint["channel_versions"]
    places = {channel: place for place, channel in enumerate(versions)}
    updated: Iterable[str] | None = checkpoint.get("updated_channels")
    return {
        **{k: value for k, value in checkpoint.items() if k not in _ELSEWHERE},
        VERSIONS: dict(versions),
        SEEN: {
            node: [part for c, v in seen.items() for part in (places.get(c, c), v)]
            for node, seen in checkpoint["versions_seen"].items()
        },
        UPDATED: updated and [places.get(channel, channel) for channel in updated],
    }


def unframed(frame: Mapping[str, Any]) -> dict[str, Any]:
    """The checkpoint that `framed` received, without id and values."""
    versions: dict[str, Any] = frame.get(VERSIONS, {})
    channels = list(versions)

    def channel(place: _ChannelIndex) -> str:
        return place if isinstance(place, str) else channels[place]

    updated: list[_ChannelIndex] | None = frame.get(UPDATED)
    return {
        **{name: value for name, value in frame.items() if name not in _OURS},
        "channel_versions": versions,
        "versions_seen": {
            node: dict(zip(map(channel, seen[::2]), seen[1::2], strict=True))
            for node, seen in frame.get(SEEN, {}).items()
        },
        "updated_channels": updated and [channel(place) for place in updated],
    }
