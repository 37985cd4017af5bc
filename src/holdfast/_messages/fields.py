"""Typed records to plain mappings and back, without losing unknown fields.

Fields that a newer version added are in the record's ``extra``. Reading does not check
types, so a value of a newer type comes back as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, TypeVar, cast, get_origin

import msgspec
from msgspec.structs import FieldInfo

from holdfast._values.shortening import shortened
from holdfast.errors import Unstorable

R = TypeVar("R", bound=msgspec.Struct)

EXTRA = "extra"


def to_plain(record: msgspec.Struct, without: Collection[str] = ()) -> dict[str, Any]:
    """The fields that differ from their defaults, and those in ``extra``."""
    found = {
        name: value
        for name, default in _defaults(type(record)).items()
        if (value := getattr(record, name)) != default and name not in without
    }
    extra: object = getattr(record, EXTRA)
    if not extra:
        return found
    if not isinstance(extra, dict) or not all(
        isinstance(name, str) for name in cast("dict[object, object]", extra)
    ):
        raise Unstorable(EXTRA, "must be a dict whose keys are names of fields")
    more = cast("dict[str, Any]", extra)
    known = more.keys() & _defaults(type(record)).keys()
    if known:
        raise Unstorable(EXTRA, f"has {min(known)!r}; set the field of that name")
    return found | more


def from_plain(type_: type[R], plain: Mapping[str, Any], **known: Any) -> R:
    """The inverse of `to_plain`; ``known`` are fields that are not in the mapping."""
    names = _defaults(type_)
    extra = {name: value for name, value in plain.items() if name not in names}
    named = {name: value for name, value in plain.items() if name in names}
    return type_(**(named | {EXTRA: extra} | known))


# --- checked fields -------------------------------------------------------------------


class _Kind(NamedTuple):
    """The types that a field may hold, in words."""

    types: tuple[type, ...]
    words: str
    of_texts: bool = False

    def has(self, value: object) -> bool:
        """True if a value is of this kind; True and False are no numbers."""
        if isinstance(value, bool) and bool not in self.types:
            return False
        if not self.of_texts or not isinstance(value, self.types):
            return isinstance(value, self.types)
        return all(isinstance(each, str) for each in cast("Iterable[object]", value))


_KINDS: dict[object, _Kind] = {
    str: _Kind((str,), "text"),
    int: _Kind((int,), "a whole number"),
    bool: _Kind((bool,), "True or False"),
    dict: _Kind((Mapping,), "a mapping"),
    list: _Kind((list, tuple), "a list"),
    list[str]: _Kind((list, tuple, set, frozenset), "a list of texts", of_texts=True),
}


def to_values(record: msgspec.Struct, without: Collection[str] = ()) -> dict[str, Any]:
    """Like `to_plain`; each field has its type, one that is ``None`` is left out."""
    found, kinds = to_plain(record, without), _kinds(type(record))
    empty = {
        name
        for name in found.keys() & kinds.keys()
        if checked(type(record), name, found[name]) is None
    }
    return {name: value for name, value in found.items() if name not in empty}


def from_values(type_: type[R], values: Mapping[str, Any], **known: Any) -> R:
    """The inverse of `to_values`; a null becomes the default, like a missing field."""
    kinds = _kinds(type_)
    there = {n: v for n, v in values.items() if v is not None or n not in kinds}
    return from_plain(type_, there, **known)


def checked(type_: type[msgspec.Struct], name: str, value: object) -> Any:
    """The value of a field, ``None`` for none; a value of another type is refused."""
    kind = _kinds(type_)[name]
    if value is None or kind.has(value):
        return value
    shown = shortened(repr(value), 60)
    meant = f"; pass [{shown}]" if kind.of_texts and isinstance(value, str) else ""
    raise Unstorable(name, f"must be {kind.words}, not {shown}{meant}")


def fitting(type_: type[msgspec.Struct], name: str, value: object, default: Any) -> Any:
    """A stored value of a field; the default for a null and for another type."""
    return value if _kinds(type_)[name].has(value) else default


@cache
def _kinds(type_: type[msgspec.Struct]) -> dict[str, _Kind]:
    fields = {f.name: f.type for f in msgspec.structs.fields(type_) if f.name != EXTRA}
    # The first type of `str | None`: None is no value.
    kinds = {
        name: declared.__args__[0] if isinstance(declared, UnionType) else declared
        for name, declared in fields.items()
    }
    found = {n: _KINDS.get(k) or _KINDS.get(get_origin(k)) for n, k in kinds.items()}
    return {name: kind for name, kind in found.items() if kind is not None}


@cache
def _defaults(type_: type[msgspec.Struct]) -> dict[str, object]:
    fields = msgspec.structs.fields(type_)
    return {f.name: _default(f) for f in fields if f.name != EXTRA}


def _default(field: FieldInfo) -> object:
    if field.default_factory is msgspec.NODEFAULT:
        return field.default
    made: object = field.default_factory()
    # A new id or time is different each time, so it is never a default to leave out.
    return made if type(made) in (list, dict, tuple) else msgspec.NODEFAULT
