"""The options that every command has, as they were given."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

When: TypeAlias = Literal["auto", "always", "never"]
BUSY_TIMEOUT = 5.0


class Settings(msgspec.Struct):
    """What was asked for beside the command itself."""

    store: str | None = None
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
