"""Typed records to plain mappings and back, without losing unknown fields.

Fields that a newer version added are in the record's ``extra``. Reading does not check
types, so a value of a newer type comes back as it was.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec.structs import FieldInfo

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
    extra: dict[str, Any] = getattr(record, EXTRA)
    known = extra.keys() & _defaults(type(record)).keys()
    if known:
        raise Unstorable(EXTRA, f"has {min(known)!r}; set the field of that name")
    return found | extra


def from_plain(type_: type[R], plain: Mapping[str, Any], **known: Any) -> R:
    """The inverse of `to_plain`; ``known`` are fields that are not in the mapping."""
    names = _defaults(type_)
    extra = {name: value for name, value in plain.items() if name not in names}
    named = {name: value for name, value in plain.items() if name in names}
    return type_(**(named | {EXTRA: extra} | known))


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
