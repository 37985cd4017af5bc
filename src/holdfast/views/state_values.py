"""The values of a checkpoint's state, each read only when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import msgspec

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads.listing import get
from holdfast._engine.threads.load import current
from holdfast._values import codec
from holdfast._values.manifest import WHOLE, Value
from holdfast._values.paths import Part, find_at, index_of, parse_path
from holdfast._values.records import Checkpoint
from holdfast._values.rope import Rope
from holdfast.errors import Corrupt, NotFound

# The names under which programs keep their messages, the usual one first.
TRANSCRIPTS = ("messages", "items")


class LazyList(Sequence[object]):
    """A stored list of which only the elements are decoded that are looked at."""

    def __init__(self, text: bytes | bytearray) -> None:
        try:
            self._elements = msgspec.json.decode(text, type=list[msgspec.Raw])
        except msgspec.DecodeError as error:
            raise Corrupt("a stored list", str(error)) from error

    def __len__(self) -> int:
        return len(self._elements)

    @overload
    def __getitem__(self, index: int) -> object: ...
    @overload
    def __getitem__(self, index: slice) -> list[object]: ...
    def __getitem__(self, index: int | slice) -> object:
        if isinstance(index, slice):
            return [codec.decode(bytes(one)) for one in self._elements[index]]
        return codec.decode(bytes(self._elements[index]))


class Transcript(msgspec.Struct, frozen=True):
    """The messages of a state, and the path of their list."""

    path: str
    messages: Sequence[object]

    @property
    def name(self) -> str:
        """The name of the value that holds them."""
        return self.path.removeprefix("/")


class StateReader:
    """Reads values of one checkpoint by name or path."""

    def __init__(self, context: Context, checkpoint: Checkpoint) -> None:
        self.context, self.checkpoint = context, checkpoint
        self._known = OpenedCheckpoint.of(checkpoint)

    @property
    def is_mapping(self) -> bool:
        """True if the state is a mapping; otherwise it is one value without a name."""
        return self._known.manifest.is_mapping

    @property
    def stored(self) -> dict[str, Value]:
        """The values as the manifest has them."""
        return self._known.manifest.values

    async def text(self, name: str) -> bytes | bytearray:
        """The JSON text of one value."""
        found = self.stored[name]
        if isinstance(found, Rope):
            return (await self.context.body(self._known, name, found)).text
        return found

    async def value(self, name: str) -> object:
        """One value of the state; the elements of a list are decoded when used."""
        text = await self.text(name)
        return LazyList(text) if text[:1] == b"[" else codec.decode(text)

    async def at(self, path: str) -> object:
        """The value at a path; a list at the top of the state is a `LazyList`."""
        parts = parse_path(path)
        if not parts and self.is_mapping:
            return await self.whole()
        name, rest = self._divided(parts)
        if name not in self.stored:
            raise self._nothing(path)
        value = await self.value(name)
        try:
            return _inside(value, rest)
        except KeyError:
            raise self._nothing(path) from None

    async def whole(self) -> object:
        """The whole state."""
        values = {n: codec.decode(await self.text(n)) for n in self.stored}
        return values if self.is_mapping else values[WHOLE]

    async def transcript(self) -> Transcript:
        """The messages of the state; none if it has no list of them."""
        names = TRANSCRIPTS if self.is_mapping else (WHOLE,)
        for name in names:
            if name in self.stored and self._may_be_list(name):
                found = await self.value(name)
                if isinstance(found, LazyList):
                    return Transcript(f"/{name}" if self.is_mapping else "", found)
        return Transcript("/messages", ())

    def _may_be_list(self, name: str) -> bool:
        value = self.stored[name]
        return value.is_list if isinstance(value, Rope) else value[:1] == b"["

    def _divided(self, parts: Sequence[Part]) -> tuple[str, Sequence[Part]]:
        if not self.is_mapping:
            return WHOLE, parts
        return str(parts[0]), parts[1:]

    def _nothing(self, path: str) -> NotFound:
        text = f"checkpoint {self.checkpoint.id!r} has nothing at {path!r}"
        return NotFound(f"{text}; look at its state", reference=path)


def _inside(value: object, parts: Sequence[Part]) -> object:
    """The value at a path inside of another one; `KeyError` if there is none."""
    if not isinstance(value, LazyList) or not parts:
        return find_at(value, parts)
    index = index_of(parts[0])
    if index is None or not -len(value) <= index < len(value):
        raise KeyError(parts[0])
    return find_at(value[index], parts[1:])


async def reader_of(context: Context, id_: str) -> StateReader:
    """A reader of the checkpoint with an id."""
    return StateReader(context, await current(context, await get(context, id_)))


def decoded(value: object) -> object:
    """A value with nothing left to decode."""
    return value[:] if isinstance(value, LazyList) else value
