"""Typed records to plain mappings and back; what a record does not know, it keeps.

A field that a newer writer added, or a value of a type it did not have, comes back as
it was: it stands in the record's ``extra``, and reading checks no types.
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
    """The fields that are not as they begin, and whatever else was kept."""
    found = {
        name: value
        for name, beginning in _beginnings(type(record)).items()
        if (value := getattr(record, name)) != beginning and name not in without
    }
    extra: dict[str, Any] = getattr(record, EXTRA)
    known = extra.keys() & _beginnings(type(record)).keys()
    if known:
        raise Unstorable(EXTRA, f"has {min(known)!r}, which is a field of its own")
    return found | extra


def from_plain(type_: type[R], plain: Mapping[str, Any], **known: Any) -> R:
    """A record of what `to_plain` gave, with ``known`` fields from elsewhere."""
    names = _beginnings(type_)
    extra = {name: value for name, value in plain.items() if name not in names}
    named = {name: value for name, value in plain.items() if name in names}
    return type_(**(named | {EXTRA: extra} | known))


@cache
def _beginnings(type_: type[msgspec.Struct]) -> dict[str, object]:
    fields = msgspec.structs.fields(type_)
    return {f.name: _beginning(f) for f in fields if f.name != EXTRA}


def _beginning(field: FieldInfo) -> object:
    if field.default_factory is msgspec.NODEFAULT:
        return field.default
    made: object = field.default_factory()
    # An id or a time is made anew each time, and always worth keeping.
    return made if type(made) in (list, dict, tuple) else msgspec.NODEFAULT
