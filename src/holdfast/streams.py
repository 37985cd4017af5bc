"""Events of streams, as values."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from holdfast._values.records import EPOCH

__all__ = ["Event"]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a stream.

    ``cursor`` is its place: opaque text, and of two cursors of a stream the greater
    text is that of the later event. ``at`` is when it was appended, in microseconds
    UTC, and ``key`` the key under which it was appended once.
    """

    cursor: str
    value: Any
    at: int
    key: str | None = None

    @property
    def time(self) -> datetime:
        """The time when it was appended."""
        return EPOCH + timedelta(microseconds=self.at)
