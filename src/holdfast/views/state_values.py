"""The values of a checkpoint's state, each read only when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads.listing import get
from holdfast._engine.threads.load import current
from holdfast._values import codec
from holdfast._values.manifest import WHOLE, Value
from holdfast._values.paths import Part, find_at, parse_path
from holdfast._values.records import Checkpoint
from holdfast._values.rope import Rope
from holdfast._values.runs import first_runs
from holdfast.errors import NotFound

# The names under which programs keep their messages, the usual one first.
TRANSCRIPTS = ("messages", "items")


class StateReader:
    """Reads values of one checkpoint by name or path."""

    def __init__(self, context: Context, checkpoint: Checkpoint) -> None:
        self.context, self.checkpoint = context, checkpoint
        self._known = OpenedCheckpoint.of(checkpoint)

    @property
    def is_mapping(self) -> bool:
        """Whether the state is a mapping; otherwise it is one value without a name."""
        return self._known.manifest.is_mapping

    @property
    def stored(self) -> dict[str, Value]:
        """The values as the manifest has them."""
        return self._known.manifest.values

    async def value(self, name: str) -> object:
        """One value of the state."""
        found = self.stored[name]
        if isinstance(found, Rope):
            body = await self.context.body(self._known, name, found)
            return codec.decode(body.text)
        return codec.decode(found)

    async def beginning(self, rope: Rope) -> bytes:
        """The first segment of a value."""
        runs = list(first_runs(rope.runs, 1))
        segments = await self.context.backend.segments(self.checkpoint.family, runs)
        return segments[0].data if segments else b""

    async def at(self, path: str) -> object:
        """The value at a path that is not the whole mapping."""
        parts = parse_path(path)
        name, rest = self._divided(parts)
        if name not in self.stored:
            raise self._nothing(path)
        try:
            return find_at(await self.value(name), rest)
        except KeyError:
            raise self._nothing(path) from None

    async def whole(self) -> object:
        """The whole state."""
        values = {name: await self.value(name) for name in self.stored}
        return values if self.is_mapping else values[WHOLE]

    async def transcript(self) -> Transcript:
        """The messages of the state; none if it has no list of them."""
        names = TRANSCRIPTS if self.is_mapping else (WHOLE,)
        for name in names:
            if name in self.stored and self._may_be_list(name):
                found = await self.value(name)
                if isinstance(found, list):
                    path = f"/{name}" if self.is_mapping else ""
                    return Transcript(path, cast("list[object]", found))
        return Transcript("/messages", [])

    def _may_be_list(self, name: str) -> bool:
        value = self.stored[name]
        return value.is_list if isinstance(value, Rope) else value[:1] == b"["

    def _divided(self, parts: Sequence[Part]) -> tuple[str, Sequence[Part]]:
        if not self.is_mapping:
            return WHOLE, parts
        return (str(parts[0]), parts[1:]) if parts else (WHOLE, ())

    def _nothing(self, path: str) -> NotFound:
        text = f"checkpoint {self.checkpoint.id!r} has nothing at {path!r}"
        return NotFound(f"{text}; look at its state", reference=path)


class Transcript(msgspec.Struct, frozen=True):
    """The messages of a state, and the path of their list."""

    path: str
    messages: list[object]


async def reader_of(context: Context, id_: str) -> StateReader:
    """A reader of the checkpoint with an id."""
    return StateReader(context, await current(context, await get(context, id_)))
