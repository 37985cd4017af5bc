"""Turns instances into fields and back without running code of their classes.

Instances are created as unpickling creates them, field by field: no constructor,
validator or hook runs, and values come back unchanged. A field that was added to the
class since gets its default; a field that was removed from it is left out.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Collection, Iterable, Iterator
from types import NoneType
from typing import Any, cast, get_args, get_origin

import msgspec
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typing_extensions import get_type_hints, is_typeddict

from holdfast.errors import Unstorable

TYPE = "__type__"
# Parts of a model that are not fields; names of fields cannot begin like this.
EXTRA, PRIVATE, UNSET = "__extra__", "__private__", "__unset__"

_EMPTY = (list, dict, set)
_SCALARS = (str, int, float, bytes)
_PLAIN = (NoneType, bool, int, float, str, bytes)

Fields = dict[str, Any]


class NotStorable(Exception):
    """An instance that cannot be stored; the text says why and what to do."""


class Shape(msgspec.Struct, frozen=True):
    """The stored form of a class: its name, instance to fields, fields to instance."""

    name: str
    dump: Callable[[Any], Fields]
    load: Callable[[Fields], object]


def shape_of(class_: type, name: str | None = None) -> Shape:
    """The shape of a class of one of the kinds at the end of this module."""
    full = name or f"{class_.__module__}.{class_.__qualname__}"
    for applies, make in _KINDS:
        if applies(class_):
            return make(class_, full)
    kinds = "an enum, a dataclass, a pydantic model, a named tuple, a TypedDict or text"
    raise Unstorable("allow", f"{full} must be {kinds}; convert it before")


def is_allowable(class_: type) -> bool:
    """True if `shape_of` has a shape for a class."""
    return any(applies(class_) for applies, _ in _KINDS)


def with_fields(classes: Iterable[Any]) -> set[type]:
    """The classes, and the classes in the type hints of their fields."""
    classes = list(classes)
    for given in classes:
        if not isinstance(given, type):
            raise Unstorable("allow", f"takes classes, not {given!r}")
        if not is_typeddict(given):
            shape_of(given)
    return reachable(classes)


def reachable(hints: Iterable[object], known: Collection[type] = ()) -> set[type]:
    """The classes in type hints and, recursively, in those of their fields.

    ``known`` are left out, with what only they lead to.
    """
    found: set[type] = set()
    # By identity: not every hint has a hash. The hints are kept, and so their ids.
    seen: dict[int, object] = {}
    waiting = list(hints)
    while waiting:
        hint = waiting.pop()
        if id(hint) in seen:
            continue
        seen[id(hint)] = hint
        waiting += _inside(hint)
        if isinstance(hint, type) and hint not in known:
            if is_typeddict(hint):
                waiting += _hints(hint)
            elif is_allowable(hint):
                waiting += _hints(hint)
                found.add(hint)
    return found


def _inside(hint: Any) -> Iterator[object]:
    """The hints that a hint is made of, such as those of a union or an alias."""
    yield from get_args(hint)
    yield get_origin(hint)
    # Of a NewType, and of an alias made by a `type` statement.
    yield getattr(hint, "__supertype__", None)
    if not isinstance(hint, type):
        yield getattr(hint, "__value__", None)


def _hints(class_: type) -> Iterator[object]:
    """The type hints of the fields of a class, none if they cannot be resolved."""
    try:
        yield from get_type_hints(class_, include_extras=True).values()
    except (NameError, TypeError, AttributeError, SyntaxError):
        # A name that only a type checker sees: the caller has to allow the class.
        # Pydantic has resolved those that it sees where the class was defined.
        if issubclass(class_, BaseModel):
            yield from (field.annotation for field in class_.model_fields.values())


# --- enums and named tuples -----------------------------------------------------------


def _enum(class_: Any, name: str) -> Shape:
    return Shape(
        name, lambda member: {"value": member.value}, lambda f: class_(f["value"])
    )


def _named_tuple(class_: Any, name: str) -> Shape:
    names: tuple[str, ...] = class_._fields
    defaults: Fields = class_._field_defaults

    def dump(value: tuple[Any, ...]) -> Fields:
        return dict(zip(names, value, strict=True))

    def load(fields: Fields) -> object:
        found = {**defaults, **fields}
        made: object = class_._make(found[field] for field in names)
        return made

    return Shape(name, dump, load)


# --- kinds of text and numbers --------------------------------------------------------


def _scalar(class_: Any, name: str) -> Shape:
    kind: Any = next(kind for kind in _SCALARS if issubclass(class_, kind))

    def dump(value: object) -> Fields:
        return {"value": kind(value), **getattr(value, "__dict__", {})}

    def load(fields: Fields) -> object:
        made = kind.__new__(class_, fields.pop("value"))
        for field, value in fields.items():
            object.__setattr__(made, field, value)
        return made

    return Shape(name, dump, load)


# --- dataclasses ----------------------------------------------------------------------


def _dataclass(class_: Any, name: str) -> Shape:
    fields = dataclasses.fields(class_)

    def dump(value: object) -> Fields:
        # In a class with slots a field without a value has no attribute.
        names = (field.name for field in fields)
        return {name: getattr(value, name) for name in names if hasattr(value, name)}

    def load(stored: Fields) -> object:
        made = object.__new__(class_)
        for field in fields:
            if field.name in stored:
                object.__setattr__(made, field.name, stored[field.name])
            elif (default := _default(field)) is not dataclasses.MISSING:
                object.__setattr__(made, field.name, default)
        return made

    return Shape(name, dump, load)


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _is_dataclass(class_: type) -> bool:
    return dataclasses.is_dataclass(class_) and not issubclass(
        class_, (str, int, float, bytes, list, dict, tuple, set, BaseException)
    )


# --- pydantic -------------------------------------------------------------------------


def _model(class_: type[BaseModel], name: str) -> Shape:
    names = tuple(class_.model_fields)

    def dump(model: BaseModel) -> Fields:
        values = model.__dict__
        found = {field: values[field] for field in names if field in values}
        unset = [field for field in found if field not in model.model_fields_set]
        return found | beside(model) | ({UNSET: unset} if unset else {})

    return Shape(name, dump, model_loader(class_))


def beside(model: BaseModel) -> Fields:
    """The parts of a model that are not fields."""
    found: Fields = {}
    if model.__pydantic_extra__:
        found[EXTRA] = model.__pydantic_extra__
    if model.__pydantic_private__:
        found[PRIVATE] = model.__pydantic_private__
    return found


def model_loader(class_: type[BaseModel]) -> Callable[[Fields], object]:
    """A function that creates a model from its fields, as unpickling does."""
    begins = dict(beginnings(class_))
    # In the order of the class, so that saving again gives the same bytes.
    every = {name: begins.get(name) for name in class_.model_fields}
    fresh: dict[str, Callable[[], Any]] = {
        name: type(value) for name, value in begins.items() if type(value) in _EMPTY
    }
    others = {n: f for n, f in class_.model_fields.items() if n not in begins}
    keeps_extra = class_.model_config.get("extra") == "allow"
    set_attribute = object.__setattr__

    def load(stored: Fields) -> object:
        values = every.copy()
        for name, make in fresh.items():
            values[name] = make()
        for name, field in others.items():
            if name not in stored:
                values[name] = _made(name, field)
        given = every.keys() & stored.keys()
        for name in given:
            values[name] = stored[name]
        made = class_.__new__(class_)
        set_attribute(made, "__dict__", values)
        extra: Fields | None = stored.get(EXTRA, {}) if keeps_extra else None
        given = (given | {*(extra or ())}) - {*stored.get(UNSET, ())}
        set_attribute(made, "__pydantic_fields_set__", given)
        set_attribute(made, "__pydantic_extra__", extra)
        set_attribute(made, "__pydantic_private__", stored.get(PRIVATE))
        return made

    return load


def beginnings(class_: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    """The fields of a model whose default is a plain value, with that value."""
    for name, field in class_.model_fields.items():
        default: Any = field.default
        if field.default_factory in _EMPTY:
            yield name, cast("Callable[[], Any]", field.default_factory)()
        elif type(default) in _PLAIN or (type(default) in _EMPTY and not default):
            yield name, default


def _made(name: str, field: FieldInfo) -> Any:
    """The default of a field that was added to its class since."""
    if field.is_required():
        raise KeyError(name)
    return field.get_default(call_default_factory=True, validated_data={})


def _old_model(class_: Any, name: str) -> Shape:
    names = tuple(class_.__fields__)

    def dump(model: object) -> Fields:
        return {n: model.__dict__[n] for n in names if n in model.__dict__}

    return Shape(name, dump, lambda fields: class_.construct(**fields))


_KINDS: tuple[tuple[Callable[[type], bool], Callable[[Any, str], Shape]], ...] = (
    (lambda c: issubclass(c, enum.Enum), _enum),
    (lambda c: hasattr(c, "_fields") and issubclass(c, tuple), _named_tuple),
    (lambda c: issubclass(c, BaseModel), _model),
    (_is_dataclass, _dataclass),
    # By its attributes: importing pydantic.v1 is slow, and warns on new Pythons.
    (lambda c: hasattr(c, "__fields__") and hasattr(c, "construct"), _old_model),
    (lambda c: issubclass(c, _SCALARS) and c not in (*_SCALARS, bool), _scalar),
)
