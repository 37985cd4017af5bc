"""The filters of LangGraph, for metadata and for values of items."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, cast

from holdfast.errors import Unstorable


def has_items(metadata: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """True if a checkpoint's metadata have all wanted items, by key or by path."""
    return all(_item_at(metadata, key) == item for key, item in (wanted or {}).items())


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """True if the value of an item meets a filter, which may use operators."""
    return all(_meets(_item_at(value, key), c) for key, c in (wanted or {}).items())


def _item_at(value: Mapping[str, Any], key: str) -> object:
    """An item by its key, or by a path such as ``user.name``."""
    if key in value:
        return value[key]
    found: object = value
    for step in key.split("."):
        if not isinstance(found, Mapping):
            return None
        found = cast("Mapping[str, object]", found).get(step)
    return found


def _meets(value: object, condition: object) -> bool:
    if not isinstance(condition, Mapping):
        return _plain(value) == _plain(condition)
    conditions = cast("Mapping[str, object]", condition)
    if any(name.startswith("$") for name in conditions):
        return all(_holds(value, name, by) for name, by in conditions.items())
    return isinstance(value, Mapping) and matches(
        cast("Mapping[str, Any]", value), conditions
    )


def _plain(value: object) -> object:
    """A tuple as the list that it is stored as."""
    return list(cast("tuple[object, ...]", value)) if type(value) is tuple else value


def _holds(value: object, name: str, by: object) -> bool:
    if name == "$eq":
        return _plain(value) == _plain(by)
    if name == "$ne":
        return _plain(value) != _plain(by)
    if name not in _COMPARISONS:
        known = ", ".join(["$eq", "$ne", *_COMPARISONS])
        raise Unstorable("filter", f"there is no operator {name!r}; use one of {known}")
    numbers = isinstance(value, int | float) and isinstance(by, int | float)
    texts = isinstance(value, str) and isinstance(by, str)
    return (numbers or texts) and _COMPARISONS[name](value, by)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
