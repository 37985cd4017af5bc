"""Checks of what callers pass, for arguments that are no names, limits or cursors.

Those have their checks beside the records, in `records`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from holdfast.errors import Unstorable


def checked_mapping(given: object, path: str) -> Mapping[Any, object]:
    """A mapping that a caller passed, empty for ``None``."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise Unstorable(path, f"must be a dict, not {_kind(given)}")
    return cast("Mapping[Any, object]", given)


def _kind(given: object) -> str:
    return type(given).__name__
