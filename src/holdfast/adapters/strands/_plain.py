"""Values of Strands as plain values, in the form its own managers read from JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, cast


def plain(value: Any) -> Any:
    """Enums by their values and tuples as lists; bytes stay bytes."""
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, object]", value)
        return {name: plain(fields[name]) for name in fields}
    if isinstance(value, list | tuple):
        return [plain(one) for one in cast("Sequence[object]", value)]
    return value.value if isinstance(value, Enum) else value
