"""The sums of what the replies of a model have used."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, cast

from holdfast.errors import Unstorable


def summed(total: Mapping[str, Any], more: Any, path: str) -> dict[str, Any]:
    """Numbers added by name; of other values the last is kept."""
    if not isinstance(more, Mapping):
        raise Unstorable(path, "must be a mapping of numbers; pass .model_dump() or so")
    found = dict(total)
    for name, value in cast("Mapping[str, Any]", more).items():
        old = found.get(name)
        if isinstance(value, Mapping):
            old = cast("dict[str, Any]", old) if isinstance(old, dict) else {}
            found[name] = summed(old, value, f"{path}.{name}")
        elif _is_number(value) and _is_number(old):
            found[name] = _added(old, value, f"{path}.{name}")
        else:
            found[name] = value
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _added(old: Any, new: Any, path: str) -> Any:
    try:
        return old + new
    except TypeError:
        text = f"cannot add a {type(new).__name__} to a {type(old).__name__}"
        raise Unstorable(path, f"{text}; always give the same type") from None
