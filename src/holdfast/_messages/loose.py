"""Looking into stored values of any shape, without raising on any of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

EMPTY: Mapping[str, object] = {}


# They take `Any`, because an object would have to be cast: a `cast` is a call, and
# a search asks for the fields of all messages.


def fields_of(value: Any) -> Mapping[str, object]:
    """The fields of a message or of a part of one, none if it is not a mapping."""
    # Keys that are not text can be stored, but no format has any.
    fields: Mapping[str, object] = value
    return fields if isinstance(value, dict) else EMPTY


def parts_of(value: Any) -> list[object]:
    """The parts of a content or the calls of a message, none if it is not a list."""
    parts: Iterable[object] = value
    return list(parts) if isinstance(value, list | tuple) else []


def kind_of(fields: Mapping[str, object]) -> str:
    """The type of an item or a part, "" if it has none."""
    kind = fields.get("type")
    return kind if isinstance(kind, str) else ""
