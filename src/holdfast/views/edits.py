"""States with other values at some paths, for a fork that tries something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from holdfast._values.paths import Part, index_of, parse_path
from holdfast.errors import Unstorable


def edited(state: object, values: Mapping[str, object]) -> object:
    """The state with each value at its path; the state itself stays as it is.

    A path may lead to a new key of a mapping, or right behind the end of a list.
    """
    for path, value in values.items():
        state = _with(state, parse_path(path), value, path)
    return state


def _with(state: object, parts: Sequence[Part], value: object, path: str) -> object:
    if not parts:
        return value
    first, *rest = parts
    if isinstance(state, dict):
        mapping = cast("dict[Any, object]", state)
        # A number can be the key of a mapping too.
        key = first if first in mapping else str(first)
        if rest and key not in mapping:
            raise _missing(path, first)
        return {**mapping, key: _with(mapping.get(key), rest, value, path)}
    index = index_of(first)
    if not isinstance(state, list) or index is None:
        raise _missing(path, first)
    items = cast("list[object]", state)
    if not rest and index == len(items):
        return [*items, value]
    if not 0 <= index < len(items):
        raise _missing(path, first)
    changed = _with(items[index], rest, value, path)
    return [*items[:index], changed, *items[index + 1 :]]


def _missing(path: str, part: Part) -> Unstorable:
    reason = f"{path!r} leads nowhere: there is no {part!r}; look at the state"
    return Unstorable("set", reason)
