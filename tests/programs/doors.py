"""Both doors to a store, for programs that use it as a blocking one."""

from __future__ import annotations

from typing import Any

import holdfast
from holdfast.testing import blocking


def opened(door: str, url: str, **options: Any) -> Any:
    """A store opened through a door: "blocking", or "awaited"."""
    if door == "awaited":
        return blocking(holdfast.open_async(url, **options))
    return holdfast.open(url, **options)
