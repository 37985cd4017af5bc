"""The intent of an erasure, which opening a store looks for."""

from __future__ import annotations

from holdfast._engine.context import Context
from holdfast.errors import Corrupt

# The setting with what is being erased.
INTENT = "erasure"


async def has_intent(context: Context) -> bool:
    """Whether there was ever something to erase."""
    try:
        return bool(await context.backend.setting(INTENT))
    except Corrupt:  # what can be read must stay readable; `verify` tells of it
        return False
