"""Three-way merge of a base and the values that two sides made of it.

Pure. A change of one side is taken from it; an equal change of both sides is taken
once. Mappings are merged key by key, lists element by element where every element has
an ``id`` of its own. Anything else that both changed is a conflict: a list without ids,
a text, and a transcript, whose messages depend on the order they were said in.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, TypeGuard, cast

import msgspec

from holdfast._values.files import FileEntry
from holdfast.diff import Path, excerpt, render_path, same


class Absent(enum.Enum):
    """A marker for a value that one side does not have."""

    ABSENT = enum.auto()

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent.ABSENT
ElementKey: TypeAlias = str | int


class ElementId(msgspec.Struct, frozen=True):
    """The step of a path into a list whose elements have unique ids."""

    id: ElementKey

    def __repr__(self) -> str:
        return f"id={excerpt(self.id)}"


class MergeConflict(msgspec.Struct, frozen=True):
    """A place that both sides changed, each to another value.

    A side that does not have the value has `ABSENT` there.
    """

    path: Path
    base: object
    ours: object
    theirs: object

    @property
    def where(self) -> str:
        """The path as people write it: ``tasks[id="a"].title``."""
        return render_path(self.path)

    def __str__(self) -> str:
        sides = (("ours", self.ours), ("theirs", self.theirs), ("base", self.base))
        shown = ", ".join(f"{name} {_shown(value)}" for name, value in sides)
        return f"! {self.where}  {shown}"


# Gives the value for a conflict, or the conflict itself if it stays one.
Decide: TypeAlias = Callable[[MergeConflict], object]
# Tells if an element of a list is a message.
IsMessage: TypeAlias = Callable[[object], bool]


class Merged(msgspec.Struct, frozen=True):
    """The merged value, with ours where a conflict stays, and all conflicts."""

    value: object
    conflicts: tuple[MergeConflict, ...]
    decided: tuple[MergeConflict, ...]


class Sides(msgspec.Struct, frozen=True):
    """The three values at one place."""

    base: object
    ours: object
    theirs: object


def three_way(sides: Sides, decide: Decide, is_message: IsMessage) -> Merged:
    """One value out of three; conflicts come in the order of the value."""
    merge = _Merge(decide, is_message)
    value = merge.at((), sides)
    return Merged(value, tuple(merge.conflicts), tuple(merge.decided))


def _shown(value: object) -> str:
    if isinstance(value, FileEntry):
        return f"{value.size:,} bytes"
    return "absent" if value is ABSENT else excerpt(value)


class _Merge:
    """One merge, and the conflicts that it has met so far."""

    def __init__(self, decide: Decide, is_message: IsMessage) -> None:
        self._decide = decide
        self._is_message = is_message
        self.conflicts: list[MergeConflict] = []
        self.decided: list[MergeConflict] = []

    # States are at most 200 levels deep, so recursion does not exhaust the stack.
    def at(self, path: Path, sides: Sides) -> object:
        base, ours, theirs = sides.base, sides.ours, sides.theirs
        if same(ours, theirs) or same(theirs, base):
            return ours
        if same(ours, base):
            return theirs
        maps = _mappings(sides)
        if maps is not None:
            return self._by_key(path, maps)
        lists = self._identified(sides)
        order = _order(lists) if lists is not None else None
        if lists is None or order is None:
            return self._conflict(MergeConflict(path, base, ours, theirs))
        return self._by_id(path, lists, order)

    def _by_key(self, path: Path, maps: _Maps) -> dict[str, object]:
        names = dict.fromkeys([*maps[1], *maps[2]])
        found = {name: self.at((*path, name), _inside(maps, name)) for name in names}
        return {name: value for name, value in found.items() if value is not ABSENT}

    def _by_id(
        self, path: Path, lists: _Lists, order: Iterable[ElementKey]
    ) -> list[object]:
        found = [self.at((*path, ElementId(id_)), _inside(lists, id_)) for id_ in order]
        return [value for value in found if value is not ABSENT]

    def _conflict(self, conflict: MergeConflict) -> object:
        value = self._decide(conflict)
        if value is conflict:
            self.conflicts.append(conflict)
            return conflict.ours
        self.decided.append(conflict)
        return value

    def _identified(self, sides: Sides) -> _Lists | None:
        """The elements of each side by their ids, ``None`` if one has no unique id."""
        base = list[object]() if sides.base is ABSENT else sides.base
        values = (base, sides.ours, sides.theirs)
        found = [self._elements_by_id(value) for value in values]
        if any(side is None for side in found):
            return None
        return cast("_Lists", tuple(found))

    def _elements_by_id(self, value: object) -> dict[ElementKey, object] | None:
        if type(value) is not list:
            return None
        elements = cast("list[object]", value)
        by_id = {_id_of(element): element for element in elements}
        if None in by_id or len(by_id) < len(elements):
            return None
        if any(map(self._is_message, elements)):
            return None
        return cast("dict[ElementKey, object]", by_id)


_Map: TypeAlias = dict[str, object]
_Maps: TypeAlias = tuple[_Map, _Map, _Map]
_ById: TypeAlias = dict[ElementKey, object]
_Lists: TypeAlias = tuple[_ById, _ById, _ById]


def _inside(sides: _Maps | _Lists, key: ElementKey) -> Sides:
    # A key of a mapping is always text, so one lookup serves both.
    values = (cast("_ById", side).get(key, ABSENT) for side in sides)
    return Sides(*values)


def _mappings(sides: Sides) -> _Maps | None:
    """The three as mappings with text keys; what both sides added has an empty base."""
    base = _Map() if sides.base is ABSENT else sides.base
    values: tuple[object, ...] = (base, sides.ours, sides.theirs)
    return cast("_Maps", values) if all(map(_has_text_keys, values)) else None


def _has_text_keys(value: object) -> TypeGuard[_Map]:
    if type(value) is not dict:
        return False
    return all(type(key) is str for key in cast("dict[object, object]", value))


def _id_of(element: object) -> ElementKey | None:
    if type(element) is not dict:
        return None
    id_ = cast("dict[object, object]", element).get("id")
    return id_ if type(id_) is str or type(id_) is int else None


def _order(lists: _Lists) -> list[ElementKey] | None:
    """The ids of both sides in one order, ``None`` if the sides contradict each other.

    Shared elements keep the order of the side that changed it. An element of one side
    stays behind its predecessor. The order does not depend on which side is ours: of
    two runs at one place, the one with the lower first id comes first.
    """
    _, ours, theirs = lists
    shared = _shared_order(lists)
    if shared is None:
        return None
    runs = [_runs(side, {*shared}) for side in (ours, theirs)]
    found: list[ElementKey] = []
    for id_ in (None, *shared):
        found += [] if id_ is None else [id_]
        here = [run[id_] for run in runs if id_ in run]
        for run in sorted(here, key=lambda run: (type(run[0]).__name__, run[0])):
            found += run
    return found


def _shared_order(lists: _Lists) -> list[ElementKey] | None:
    base, ours, theirs = lists
    shared = ours.keys() & theirs.keys()
    one, other = ([id_ for id_ in side if id_ in shared] for side in (ours, theirs))
    before = [id_ for id_ in base if id_ in shared]
    if other in (one, before):
        return one
    return other if one == before else None


def _runs(
    side: Iterable[ElementKey], shared: set[ElementKey]
) -> dict[ElementKey | None, list[ElementKey]]:
    """The elements of one side alone, by the shared element before them."""
    runs: dict[ElementKey | None, list[ElementKey]] = {}
    anchor: ElementKey | None = None
    for id_ in side:
        if id_ in shared:
            anchor = id_
        else:
            runs.setdefault(anchor, []).append(id_)
    return runs
