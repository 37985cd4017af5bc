"""Drafts: what is to be saved, encoded once, and how it builds on the parent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol, cast

import msgspec

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._port import SegmentsKey
from holdfast._values import codec
from holdfast._values.arguments import checked_mapping
from holdfast._values.file_listing import Listing
from holdfast._values.limits import LARGEST_ELEMENT, LARGEST_STATE, check_size
from holdfast._values.manifest import INLINE_SIZE, WHOLE, FileLog, Manifest, Value
from holdfast._values.records import Checkpoint, Segment, Unset
from holdfast._values.rope import (
    Blocks,
    Body,
    Rope,
    Spliced,
    append,
    is_list,
    read_body,
    splice,
    write,
)
from holdfast.errors import Unstorable


class NextState(msgspec.Struct):
    """The values of a new checkpoint, the segments it adds, and the bytes in memory.

    ``once`` and ``forget`` are as in the options of a save, for drafts that know only
    on their parent what they are. ``listing`` is the list of the files, if it is known.
    """

    is_mapping: bool
    values: dict[str, Value] = {}
    segments: list[Segment] = []
    bodies: dict[str, Body] = {}
    once: tuple[tuple[str, bytes], ...] = ()
    forget: tuple[str, ...] = ()
    files: FileLog | None = None
    listing: Listing | None = None

    def put(self, name: str, spliced: Spliced) -> None:
        """Take a value that is stored as a rope; refuses too large an element."""
        if spliced.rope.size > LARGEST_ELEMENT:
            for segment in spliced.segments:
                check_size(len(segment.data), path(name), LARGEST_ELEMENT)
        self.values[name] = spliced.rope
        self.segments += spliced.segments
        self.bodies[name] = spliced.body


class StateTexts(msgspec.Struct, frozen=True):
    """The JSON texts of a state's values, by name."""

    values: dict[str, bytes]
    is_mapping: bool


class Draft(Protocol):
    """A change that can be saved as the next state after a parent."""

    async def plan(
        self, context: Context, parent: OpenedCheckpoint | None, blocks: Blocks
    ) -> NextState:
        """The next state; the parent's bodies may be changed in place."""
        ...

    def matches(self, stored: StateTexts, before: StateTexts | None) -> bool:
        """True if saving this draft after ``before`` gives the state ``stored``.

        Without ``before``, true if that is possible. It decides whether a save with an
        id
        that is in use repeats the earlier save.
        """
        ...


class StateDraft:
    """A whole state."""

    def __init__(self, state: object) -> None:
        plain = codec.flattened(state)
        named = _named_values(plain)
        self.is_mapping = named is not None
        if named is None:
            self.texts = {WHOLE: codec.encode(plain, "state")}
        else:
            self.texts = dict[str, bytes]()
            size = 0
            for name, value in named.items():
                text = codec.encode(value, path(checked_key(name)))
                self.texts[name] = text
                size += len(text)
                check_size(size, "state", LARGEST_STATE)

    @classmethod
    def of_texts(cls, texts: dict[str, bytes], *, is_mapping: bool) -> StateDraft:
        """A state that has been encoded already."""
        draft = cls.__new__(cls)
        draft.is_mapping, draft.texts = is_mapping, texts
        return draft

    async def plan(
        self, context: Context, parent: OpenedCheckpoint | None, blocks: Blocks
    ) -> NextState:
        plan = NextState(self.is_mapping)
        for name, text in self.texts.items():
            await put_text(plan, Basis(context, parent, blocks), name, text)
        return plan

    def matches(self, stored: StateTexts, before: StateTexts | None) -> bool:
        del before  # a whole state does not depend on it
        same = list(stored.values.items()) == list(self.texts.items())
        return same and stored.is_mapping == self.is_mapping


class ListsDraft:
    """Elements to append to lists; does not read the elements that are there."""

    def __init__(self, lists: Mapping[str, Sequence[object]]) -> None:
        self.additions: dict[str, bytes] = {}
        for name, elements in checked_mapping(lists, "lists").items():
            checked = checked_key(name)
            self.additions[checked] = _elements(checked, elements)

    async def plan(
        self, context: Context, parent: OpenedCheckpoint | None, blocks: Blocks
    ) -> NextState:
        del context  # nothing is read
        old = parent.manifest if parent else Manifest(is_mapping=True)
        if not old.is_mapping:
            raise Unstorable(
                "state", "is not a mapping; save() the whole state instead"
            )
        plan = NextState(is_mapping=True, values=dict(old.values))
        if parent is not None:
            plan.bodies = dict(parent.bodies)
        for name, addition in self.additions.items():
            self._extend(plan, name, addition, blocks)
        return plan

    def _extend(
        self, plan: NextState, name: str, addition: bytes, blocks: Blocks
    ) -> None:
        before = plan.values.setdefault(name, b"[]")
        if not (before.is_list if isinstance(before, Rope) else is_list(before)):
            raise Unstorable(path(name), "is not a list; save() the new value instead")
        if not addition:
            return
        if isinstance(before, Rope):
            body = plan.bodies.pop(name, None)
            plan.put(name, append(before, body, addition, blocks))
            if body is None:
                del plan.bodies[name]
            return
        text = _extended(before, addition)
        if len(text) <= INLINE_SIZE:
            plan.values[name] = text
        else:
            plan.put(name, write(text, blocks))

    def matches(self, stored: StateTexts, before: StateTexts | None) -> bool:
        if before is None:
            return stored.is_mapping and all(
                _ends_with(stored.values.get(name, b""), addition)
                for name, addition in self.additions.items()
            )
        return stored.is_mapping and stored.values == self.applied(before.values)

    def applied(self, before: Mapping[str, bytes]) -> dict[str, bytes]:
        """The texts of a state's values after the elements were appended."""
        expected = dict(before)
        for name, addition in self.additions.items():
            expected[name] = _extended(expected.get(name, b"[]"), addition)
        return expected


class Amendment(msgspec.Struct, frozen=True):
    """New values by name, `UNSET` to remove one, and elements to append to lists.

    With ``whole`` all other values are removed.
    """

    values: Mapping[str, object]
    lists: ListsDraft | None = None
    whole: bool = False

    def texts(self) -> dict[str, bytes | None]:
        """The values as JSON, ``None`` for those to remove."""
        return {
            checked_key(name): None
            if isinstance(value, Unset)
            else codec.encode(value, path(name))
            for name, value in self.values.items()
        }


# Gives the change from some of the values before it, ``None`` for a new thread.
Amend = Callable[[dict[str, object] | None], Amendment]


class AmendDraft:
    """A change that depends on some of the values before it; it reads only those."""

    def __init__(self, reads: Sequence[str], amend: Amend) -> None:
        self.reads = reads
        self.amend = amend

    async def plan(
        self, context: Context, parent: OpenedCheckpoint | None, blocks: Blocks
    ) -> NextState:
        before = await read_values(context, parent, self.reads) if parent else None
        amendment = self.amend(before)
        if amendment.whole:
            draft = StateDraft(dict(amendment.values))
            return await draft.plan(context, parent, blocks)
        lists = amendment.lists or ListsDraft({})
        plan = await lists.plan(context, parent, blocks)
        for name, text in amendment.texts().items():
            plan.bodies.pop(name, None)
            if text is None:
                plan.values.pop(name, None)
            else:
                await put_text(plan, Basis(context, parent, blocks), name, text)
        return plan

    def matches(self, stored: StateTexts, before: StateTexts | None) -> bool:
        if before is None:  # the values it depends on were removed
            return False
        found = {
            name: codec.decode(before.values[name])
            for name in self.reads
            if name in before.values
        }
        amendment = self.amend(found if before.values else None)
        if amendment.whole:
            return StateDraft(dict(amendment.values)).matches(stored, before)
        expected = (amendment.lists or ListsDraft({})).applied(before.values)
        for name, text in amendment.texts().items():
            expected.pop(name, None)
            if text is not None:
                expected[name] = text
        return stored.is_mapping and stored.values == expected


class Basis(msgspec.Struct, frozen=True):
    """The parent of a new value, and the ranges for the numbers of its segments."""

    context: Context
    parent: OpenedCheckpoint | None
    blocks: Blocks


async def put_text(plan: NextState, basis: Basis, name: str, text: bytes) -> None:
    """Set a value; segments that it shares with the parent's value are kept."""
    before = basis.parent.manifest.values.get(name) if basis.parent else None
    if len(text) <= INLINE_SIZE:
        plan.values[name] = text
    elif basis.parent is not None and isinstance(before, Rope):
        body = await basis.context.body(basis.parent, name, before)
        plan.put(name, splice(before, body, text, basis.blocks))
    else:
        plan.put(name, write(text, basis.blocks))


async def read_values(
    context: Context, known: OpenedCheckpoint, names: Sequence[str]
) -> dict[str, object]:
    """Some of a checkpoint's values, decoded, without those that it does not have."""
    found: dict[str, object] = {}
    for name in names:
        value = known.manifest.values.get(name)
        if isinstance(value, Rope):
            body = await context.body(known, name, value)
            found[name] = codec.decode(body.text)
        elif value is not None:
            found[name] = codec.decode(value)
    return found


async def read_bodies(
    context: Context, checkpoints: Sequence[OpenedCheckpoint], names: Sequence[str]
) -> None:
    """Read some of the values of several checkpoints at once, for `read_values`."""
    ropes = [
        (known, name, rope)
        for known in checkpoints
        for name in names
        if isinstance(rope := known.manifest.values.get(name), Rope)
    ]
    keys = [SegmentsKey(known.head.family, rope.runs) for known, _, rope in ropes]
    found = await context.backend.read(keys)
    for (known, name, rope), pieces in zip(ropes, found, strict=True):
        if pieces is not None:  # otherwise reading the value raises the error
            parts = [segment.data for segment in pieces.segments]
            known.bodies[name] = read_body(rope, parts)


async def read_values_of(
    context: Context, checkpoint: Checkpoint, *names: str
) -> dict[str, Any]:
    """Like `read_values`, of a checkpoint that is not in the cache."""
    return await read_values(context, OpenedCheckpoint.of(checkpoint), names)


def _named_values(state: object) -> dict[str, object] | None:
    """The values of a mapping with text keys, ``None`` for any other state."""
    if type(state) is not dict:
        return None
    mapping = cast("dict[object, object]", state)
    if all(type(key) is str for key in mapping):
        return cast("dict[str, object]", mapping)
    return None


def checked_key(name: object) -> str:
    """A key of a state: any text that can be encoded as UTF-8."""
    if type(name) is not str:
        raise Unstorable("state", f"has the key {name!r}; keys must be text")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Unstorable("state", f"the key {name!r} has a lone surrogate") from None
    return name


@lru_cache  # every save names its values, and only an error needs the path
def path(name: str) -> str:
    """The path of a value in error messages."""
    return f"state.{name}" if name.isidentifier() else f"state[{name!r}]"


def _ends_with(text: bytes, addition: bytes) -> bool:
    ends = (b"[%b]" % addition, b",%b]" % addition)
    return text.startswith(b"[") and (not addition or text.endswith(ends))


def _extended(text: bytes, addition: bytes) -> bytes:
    """The JSON text of a list with elements appended."""
    return b"[%b]" % b",".join(filter(None, (text[1:-1], addition)))


def _elements(name: str, elements: object) -> bytes:
    if not isinstance(elements, (list, tuple)):
        kind = type(elements).__name__
        raise Unstorable(path(name), f"append takes a list of elements, not {kind}")
    listed: list[object] = [*elements]
    return codec.encode(listed, path(name))[1:-1]
