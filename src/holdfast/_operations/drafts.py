"""What is to be saved, encoded once, and how it builds on a known parent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, cast

import msgspec

from holdfast import _codec
from holdfast._cache import Known
from holdfast._manifest import INLINE_SIZE, WHOLE, Manifest, Value
from holdfast._operations.context import Context
from holdfast._records import Segment
from holdfast._rope import Blocks, Body, Rope, Spliced, append, is_list, splice, write
from holdfast.errors import Unstorable


class Plan(msgspec.Struct):
    """A next checkpoint's values, the segments they add and their bytes in memory."""

    is_mapping: bool
    values: dict[str, Value] = msgspec.field(default_factory=dict[str, Value])
    segments: list[Segment] = msgspec.field(default_factory=list[Segment])
    bodies: dict[str, Body] = msgspec.field(default_factory=dict[str, Body])

    def put(self, name: str, spliced: Spliced) -> None:
        self.values[name] = spliced.rope
        self.segments += spliced.segments
        self.bodies[name] = spliced.body


class Texts(msgspec.Struct, frozen=True):
    """The JSON texts of a state's values, by name."""

    values: dict[str, bytes]
    is_mapping: bool


class Draft(Protocol):
    """Something that can be saved on top of a parent."""

    async def plan(
        self, context: Context, parent: Known | None, blocks: Blocks
    ) -> Plan:
        """Build on the parent's values; its bodies may be changed in place."""
        ...

    def matches(self, stored: Texts, before: Texts | None) -> bool:
        """Whether this draft would have made a stored state of the one before it.

        Without the one before, whether it could have.
        """
        ...


class StateDraft:
    """A whole state."""

    def __init__(self, state: object) -> None:
        named = _named_values(state)
        self.is_mapping = named is not None
        if named is None:
            self.texts = {WHOLE: _codec.encode(state, "state")}
        else:
            self.texts = {
                checked_key(name): _codec.encode(value, path(name))
                for name, value in named.items()
            }

    @classmethod
    def of_texts(cls, texts: dict[str, bytes], *, is_mapping: bool) -> StateDraft:
        """A state that is encoded already."""
        draft = cls.__new__(cls)
        draft.is_mapping, draft.texts = is_mapping, texts
        return draft

    async def plan(
        self, context: Context, parent: Known | None, blocks: Blocks
    ) -> Plan:
        plan = Plan(self.is_mapping)
        old = parent.manifest.values if parent else {}
        for name, text in self.texts.items():
            before = old.get(name)
            if len(text) <= INLINE_SIZE:
                plan.values[name] = text
            elif parent is not None and isinstance(before, Rope):
                body = await context.body(parent, name, before)
                plan.put(name, splice(before, body, text, blocks))
            else:
                plan.put(name, write(text, blocks))
        return plan

    def matches(self, stored: Texts, before: Texts | None) -> bool:
        del before  # a whole state is what it is
        same = list(stored.values.items()) == list(self.texts.items())
        return same and stored.is_mapping == self.is_mapping


class ListsDraft:
    """Elements for the ends of lists; never looks at the elements already there."""

    def __init__(self, lists: Mapping[str, Sequence[object]]) -> None:
        self.additions = {
            checked_key(name): _elements(name, elements)
            for name, elements in lists.items()
        }

    async def plan(
        self, context: Context, parent: Known | None, blocks: Blocks
    ) -> Plan:
        del context  # appending reads nothing
        old = parent.manifest if parent else Manifest(is_mapping=True)
        if not old.is_mapping:
            raise Unstorable(
                "state", "is not a mapping; save() the whole state instead"
            )
        plan = Plan(is_mapping=True, values=dict(old.values))
        if parent is not None:
            plan.bodies = dict(parent.bodies)
        for name, addition in self.additions.items():
            self._extend(plan, name, addition, blocks)
        return plan

    def _extend(self, plan: Plan, name: str, addition: bytes, blocks: Blocks) -> None:
        before = plan.values.setdefault(name, b"[]")
        if not (before.is_list if isinstance(before, Rope) else is_list(before)):
            raise Unstorable(path(name), "is not a list; save() the new value instead")
        if not addition:
            return
        if isinstance(before, Rope):
            body = plan.bodies.pop(name, None)
            spliced = append(before, body, addition, blocks)
            plan.put(name, spliced)
            if body is None:
                del plan.bodies[name]
            return
        text = _extended(before, addition)
        if len(text) <= INLINE_SIZE:
            plan.values[name] = text
        else:
            plan.put(name, write(text, blocks))

    def matches(self, stored: Texts, before: Texts | None) -> bool:
        if before is None:
            return stored.is_mapping and all(
                _ends_with(stored.values.get(name, b""), addition)
                for name, addition in self.additions.items()
            )
        expected = dict(before.values)
        for name, addition in self.additions.items():
            expected[name] = _extended(expected.get(name, b"[]"), addition)
        return stored.is_mapping and stored.values == expected


def _named_values(state: object) -> dict[str, object] | None:
    """A state that is a mapping of names to values, ``None`` for any other."""
    if type(state) is not dict:
        return None
    mapping = cast("dict[object, object]", state)
    if all(type(key) is str for key in mapping):
        return cast("dict[str, object]", mapping)
    return None


def checked_key(name: object) -> str:
    """A name of a value in a state; any text that can be encoded."""
    if type(name) is not str:
        raise Unstorable("state", f"has the key {name!r}; keys must be text")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Unstorable("state", f"the key {name!r} has a lone surrogate") from None
    return name


def path(name: str) -> str:
    """Where a value stands, as error messages show it."""
    return f"state.{name}" if name.isidentifier() else f"state[{name!r}]"


def _ends_with(text: bytes, addition: bytes) -> bool:
    ends = (b"[%b]" % addition, b",%b]" % addition)
    return text.startswith(b"[") and (not addition or text.endswith(ends))


def _extended(text: bytes, addition: bytes) -> bytes:
    """A list's JSON text with more elements."""
    return b"[%b]" % b",".join(filter(None, (text[1:-1], addition)))


def _elements(name: str, elements: object) -> bytes:
    if not isinstance(elements, list | tuple):
        kind = type(elements).__name__
        raise Unstorable(path(name), f"append takes a list of elements, not {kind}")
    listed = list(cast("Sequence[object]", elements))
    return _codec.encode(listed, path(name))[1:-1]
