"""Python objects as plain values and back, by a closed table of types.

An object that JSON cannot express becomes a mapping whose ``__type__`` names an entry
of the table. Loading creates only the types of the table: nothing is imported, called
or looked up by a stored name. A stored message is still readable as a message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, Self, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from typing_extensions import is_typeddict

from holdfast.errors import FormatMismatch, Unstorable
from holdfast.operations.objects import shapes
from holdfast.operations.objects.python_types import python_shapes
from holdfast.operations.objects.shapes import TYPE, Fields, NotStorable, Shape
from holdfast.operations.values import codec

# Types whose instances the codec encodes directly.
NATIVE: frozenset[type] = frozenset(
    {NoneType, bool, int, float, str, bytes, date, timedelta, Decimal, UUID}
)
_TOO_DEEP = "is nested too deeply, or inside itself; refer to it by id"


class TypeTable:
    """The storable types; ``allow`` adds classes and those of their fields.

    An adapter makes a subclass with the ``known`` types of its framework.
    """

    def __init__(self, allow: Iterable[type] = ()) -> None:
        allow = list(allow)
        # In the order given: of classes with one name the last is loaded.
        others = shapes.with_fields(allow) - {*allow}
        self._allowed = [*others, *(c for c in allow if not is_typeddict(c))]
        self._shapes: dict[type, Shape] = {**self.known()}
        for class_ in self._allowed:
            self._shapes.setdefault(class_, shapes.shape_of(class_))
        self._loads: dict[str, Callable[[Fields], object]] = {
            shape.name: shape.load for shape in self._shapes.values()
        }
        self._loads |= _LOADS
        self._dumps: dict[type, Callable[[Any], object]] = {
            list: self._plain_list,
            dict: self._plain_dict,
            tuple: lambda value: tuple(self._plain_list(value)),
            set: lambda value: self._plain_set(value, "set"),
            frozenset: lambda value: self._plain_set(value, "frozenset"),
            datetime: _plain_moment,
            time: _plain_moment,
        }
        for class_, shape in self._shapes.items():
            self._dumps[class_] = _dumper(shape, self._plain)

    def known(self) -> Mapping[type, Shape]:
        """The shapes of the types that need no permission."""
        return python_shapes()

    def unknown(self, value: object) -> object:
        """A plain value for an object of a class that is not in the table."""
        raise NotStorable(_refusal(type(value)))

    @property
    def classes(self) -> Collection[type]:
        """All classes in the table."""
        return self._shapes.keys()

    def allowing(self, hints: Iterable[object]) -> Self:
        """The same types, and the classes in type hints and in those of their fields.

        Of two classes with one name the new one is loaded.
        """
        more = shapes.reachable(hints, self._shapes.keys())
        return type(self)([*self._allowed, *more]) if more else self

    def encode(self, value: object, path: str) -> bytes:
        """The JSON text of a value; ``path`` names it in errors."""
        return codec.encode(self.plain(value, path), path)

    def plain(self, value: object, path: str) -> object:
        """The value as types that the codec can encode; ``path`` names it in errors."""
        try:
            return self._plain(value)
        except NotStorable as refused:
            where = path + self._path_to_refused(value)
            raise Unstorable(where, str(refused)) from None
        except RecursionError:
            raise Unstorable(path, _TOO_DEEP) from None

    def revive(self, value: Any) -> Any:
        """The value that was passed to `plain`; changes ``value`` in place."""
        kind = cast("type[object]", type(value))
        if kind is dict:
            for key, item in value.items():
                if type(item) in _HOLDING:
                    value[key] = self.revive(item)
            return self._load(value) if TYPE in value else value
        if kind is list:
            for n, item in enumerate(value):
                if type(item) in _HOLDING:
                    value[n] = self.revive(item)
            return value
        return tuple(map(self.revive, value)) if kind is tuple else value

    def _plain(self, value: object) -> object:
        kind = type(value)
        if kind in NATIVE:
            return value
        dump = self._dumps.get(kind)
        if dump is not None:
            return dump(value)
        return self.unknown(value)

    def _plain_list(self, value: Iterable[Any]) -> list[object]:
        plain = self._plain
        return [v if type(v) in NATIVE else plain(v) for v in value]

    def _plain_dict(self, value: dict[Any, Any]) -> object:
        if TYPE in value or not all(type(key) in NATIVE for key in value):
            pairs = [[self._plain(k), self._plain(v)] for k, v in value.items()]
            return {TYPE: "dict", "items": pairs}
        return {k: self._plain(v) for k, v in value.items()}

    def _plain_set(self, value: Iterable[Any], name: str) -> object:
        if all(type(item) in NATIVE for item in value):
            return value
        # Sorted, so that equal sets are stored in the same bytes.
        items = sorted(self._plain_list(value), key=lambda i: codec.encode(i, name))
        return {TYPE: name, "items": items}

    def _load(self, stored: Fields) -> object:
        name = stored.pop(TYPE)
        load = self._loads.get(name) if isinstance(name, str) else None
        if load is None:
            raise FormatMismatch(
                f"a stored value is of type {name!r}, which is not allowed here; if you"
                " know it, pass the class: allow=[...]",
                code="type_not_allowed",
            )
        try:
            return load(stored)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            text = f"a stored {name} cannot be made again: {error!r}; check its class"
            raise FormatMismatch(text, code="type_changed") from error

    def _path_to_refused(self, value: Any) -> str:
        """The path inside a value to its first part that cannot be stored."""
        for step, item in self._parts(value):
            try:
                self._plain(item)
            except NotStorable:
                return step + self._path_to_refused(item)
        return ""

    def _parts(self, value: Any) -> Iterator[tuple[str, Any]]:
        kind = cast("type[object]", type(value))
        if kind is dict:
            yield from ((f"[{key!r}]", item) for key, item in value.items())
        elif kind in (list, tuple):
            yield from ((f"[{n}]", item) for n, item in enumerate(value))
        elif kind in self._shapes:
            # A shape can refuse the object itself, and not one of its fields.
            with suppress(NotStorable):
                fields = self._shapes[kind].dump(value)
                yield from ((f".{name}", item) for name, item in fields.items())


def _refusal(kind: type) -> str:
    if shapes.is_allowable(kind):
        hint = f"pass the class: allow=[{kind.__qualname__}]"
    else:
        hint = "pass plain data, or keep its name and look it up after loading"
    return f"{kind.__module__}.{kind.__qualname__} is not storable; {hint}"


def _dumper(
    shape: Shape, plain: Callable[[Any], object]
) -> Callable[[Any], dict[str, object]]:
    name, fields_of = shape.name, shape.dump

    def dump(value: Any) -> dict[str, object]:
        # The name is last, so that a reader of a message sees role and text first.
        found: dict[str, object] = {**fields_of(value), TYPE: name}
        for key, item in found.items():
            if type(item) not in NATIVE:
                found[key] = plain(item)
        return found

    return dump


def _plain_moment(moment: Any) -> object:
    """A datetime or time; one with a named zone as a mapping."""
    if type(moment.tzinfo) is not ZoneInfo:
        return moment
    zone = moment.tzinfo.key
    return {TYPE: "zoned", "moment": moment.replace(tzinfo=None), "zone": zone}


_HOLDING = frozenset({dict, list, tuple})
# The names in the table that are not classes with a shape.
_LOADS: dict[str, Callable[[Fields], object]] = {
    "dict": lambda fields: dict(fields["items"]),
    "set": lambda fields: set(fields["items"]),
    "frozenset": lambda fields: frozenset(fields["items"]),
    "zoned": lambda f: f["moment"].replace(tzinfo=ZoneInfo(f["zone"])),
}
