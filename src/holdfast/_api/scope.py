"""The context of a scope, for the sync and the async API."""

from __future__ import annotations

from time import monotonic

from holdfast._engine.context import Context
from holdfast._engine.scopes.scoped import scoped


def scope_of(context: Context, name: str, *, is_borrowed: bool = True) -> Context:
    """A scope of an open store; closing it leaves one that ``is_borrowed`` open."""
    return scoped(context, name, is_borrowed=is_borrowed, timer=monotonic)
