"""The values of the options that every command has."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

When: TypeAlias = Literal["auto", "always", "never"]
BUSY_TIMEOUT = 5.0


class SharedOptions(msgspec.Struct):
    """The values, before a command runs the defaults."""

    store: str | None = None
    scope: str | None = None
    directory: str | None = None
    read_only: bool = False
    wait: float = BUSY_TIMEOUT
    json: bool = False
    ndjson: bool = False
    quiet: bool = False
    verbose: bool = False
    color: When = "auto"
    ascii: bool = False
    pager: bool = True
