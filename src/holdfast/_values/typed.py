"""Typed objects as mappings of their fields, and back as a requested type.

Dataclasses, msgspec structs and pydantic models. They are told apart by attributes, so
that no optional library has to be imported.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable
from math import isnan
from types import NoneType
from typing import Any, TypeAlias, TypeVar

import msgspec

from holdfast._values.shortening import shortened
from holdfast.errors import FormatMismatch, Unstorable

T = TypeVar("T")
_Value: TypeAlias = Any
# So many characters of a value are shown in an error.
LONGEST = 40


def prepare(*types: object) -> None:
    """Have msgspec read the annotations of types now, while their module is imported.

    It reads them when a type is first used, and the process crashes if two threads are
    the first ones at the same moment.
    """
    for each in types:
        msgspec.msgpack.Decoder(each)


def is_typed(kind: type) -> bool:
    """True if the instances of a class are stored as a mapping of their fields."""
    return (
        hasattr(kind, "__dataclass_fields__")
        or hasattr(kind, "__struct_config__")
        or hasattr(kind, "model_validate")
    )


def _kind(value: object) -> _Value:
    """The class of a value, with attributes that type checkers do not know."""
    return type(value)


def convert(value: object, type_: type[T]) -> T:
    """A decoded value as a dataclass, TypedDict, Struct, pydantic model or typing type.

    Raises `FormatMismatch` if it does not fit.
    """
    try:
        return msgspec.convert(value, type_, dec_hook=_validate_model)
    # A NameError comes from an annotation that names something unknown.
    except (ValueError, TypeError, NameError) as error:
        name = getattr(type_, "__name__", str(type_))
        message = f"the state does not fit {name}: {error}; load it without type="
        raise FormatMismatch(message) from error


def _validate_model(model: _Value, value: object) -> object:
    # For any other class msgspec then reports that the value is not an instance.
    if not hasattr(model, "model_validate"):
        return value
    # Fields are stored by their names, not by their aliases; before 2.11 pydantic
    # knows names only if the model allows them.
    defaults: _Value = getattr(model.model_validate, "__kwdefaults__", None)
    by_name = "by_name" in (defaults or ())
    by = {"by_name": True, "by_alias": True} if by_name else {}
    return model.model_validate(value, **by)


# --- as plain values ------------------------------------------------------------------


def plain(value: _Value) -> _Value:
    """A typed object as plain values: its fields by name, an enum as its value."""
    if type(value) in _LEAVES:
        return value
    kind = _kind(value)
    if is_typed(kind):
        return plain(_fields(value))
    if issubclass(kind, enum.Enum):
        return value.value
    if issubclass(kind, tuple):
        return tuple(map(plain, value))
    return _PLAIN[kind](value) if kind in _PLAIN else value


def _plain_key(key: _Value) -> _Value:
    """A key or a member of a set; a typed object stays, because a mapping cannot be."""
    kind = _kind(key)
    if issubclass(kind, enum.Enum):
        return key.value
    return tuple(map(_plain_key, key)) if issubclass(kind, tuple) else key


# Found quickly: most values are of these types.
_LEAVES = {str, int, float, bool, NoneType}
_PLAIN: dict[type, Callable[[_Value], _Value]] = {
    dict: lambda items: {_plain_key(key): plain(items[key]) for key in items},
    list: lambda items: list(map(plain, items)),
    set: lambda members: set(map(_plain_key, members)),
    frozenset: lambda members: frozenset(map(_plain_key, members)),
}


def _fields(value: _Value) -> object:
    kind = _kind(value)
    if hasattr(kind, "model_validate"):
        return _fields_of_model(value)
    if hasattr(kind, "__struct_config__"):
        return _fields_of_struct(value)
    names = (field.name for field in dataclasses.fields(value))
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _fields_of_model(value: _Value) -> object:
    """Every field, also those that `model_dump` would leave out or replace."""
    kind = _kind(value)
    if getattr(kind, "__pydantic_root_model__", False):
        return value.root
    extra: dict[str, _Value] = value.model_extra or {}
    return {name: getattr(value, name) for name in kind.model_fields} | extra


def _fields_of_struct(value: _Value) -> object:
    """The mapping that msgspec encodes: encoded names, and a tag if it has one."""
    kind = _kind(value)
    config = kind.__struct_config__
    values = [getattr(value, name) for name in kind.__struct_fields__]
    if config.array_like:
        return values if config.tag is None else [config.tag, *values]
    tag = {} if config.tag is None else {config.tag_field: config.tag}
    named = zip(kind.__struct_encode_fields__, values, strict=True)
    return tag | {name: item for name, item in named if item is not msgspec.UNSET}


# --- what comes back ------------------------------------------------------------------


class Difference(msgspec.Struct, frozen=True):
    """A place where two values differ, as the rest of a path, and how."""

    where: str
    how: str


def check(value: object, stored: object, path: str) -> None:
    """Refuse a typed object if its plain values do not give back an equal one."""
    name = type(value).__name__
    try:
        found = _difference(value, convert(stored, type(value)))
        why = found and f"{path}{found.where} {found.how}"
    except FormatMismatch as mismatch:
        why = str(mismatch.__cause__)
    if why is not None:
        raise Unstorable(
            path,
            f"{name} would not come back equal with type={name}: {why}; correct the"
            " value or its annotation, or save a mapping",
        )


def check_key(key: _Value, path: str) -> None:
    """Refuse a typed object as a key or in a set, where a mapping cannot be."""
    kind = _kind(key)
    if is_typed(kind):
        text = f"{kind.__name__} cannot be a key or in a set; use one of its fields"
        raise Unstorable(path, text)
    for n, part in enumerate(key if kind is tuple else ()):
        check_key(part, f"{path}[{n}]")


def _difference(a: _Value, b: _Value) -> Difference | None:
    """The difference between two values, types included; ``None`` if they are equal."""
    if a is b:
        return None
    kind, other = _kind(a), _kind(b)
    if kind is not other:
        # A whole number where a float is declared comes back as an equal float.
        is_number = {kind, other} == {int, float} and a == b
        types = f"is {kind.__name__} and would be {other.__name__}"
        return None if is_number else Difference("", types)
    if is_typed(kind):
        return _difference_of_fields(a, b)
    if kind is dict:
        return _difference_of_dicts(a, b)
    if issubclass(kind, list | tuple) and len(a) == len(b):
        parts = zip(range(len(a)), a, b, strict=True)
        return _first_difference((f"[{n}]", x, y) for n, x, y in parts)
    return None if _is_equal(a, b) else _unequal(a, b)


def _is_equal(a: _Value, b: _Value) -> bool:
    if type(a) in (set, frozenset):  # an enum can equal the text that is its value
        return {(type(item), item) for item in a} == {(type(item), item) for item in b}
    return a == b or (type(a) is float and isnan(a) and isnan(b))


def _unequal(a: object, b: object) -> Difference:
    texts = [shortened(repr(value), LONGEST) for value in (a, b)]
    return Difference("", f"is {texts[0]} and would be {texts[1]}")


def _difference_of_fields(a: _Value, b: _Value) -> Difference | None:
    private = [getattr(value, "__pydantic_private__", None) for value in (a, b)]
    if private[0] != private[1]:
        return Difference("", "has private attributes, which are not stored")
    return _difference(_fields(a), _fields(b))


def _difference_of_dicts(a: _Value, b: _Value) -> Difference | None:
    keys = _difference(list(a), list(b))
    if keys is not None:
        return Difference(f".keys(){keys.where}", keys.how)
    return _first_difference((f".{key}", a[key], b[key]) for key in a)


def _first_difference(
    parts: Iterable[tuple[str, _Value, _Value]],
) -> Difference | None:
    for where, a, b in parts:
        found = _difference(a, b)
        if found is not None:
            return Difference(where + found.where, found.how)
    return None
