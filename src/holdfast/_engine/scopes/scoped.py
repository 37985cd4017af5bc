"""The context of a scope: operations that get it see nothing else of the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec.structs import replace

from holdfast._engine.cache import CachePart
from holdfast._engine.context import Context
from holdfast._engine.scopes.keys import ScopeKeys
from holdfast._engine.scopes.layer import ScopeLayer
from holdfast._engine.scopes.names import ScopeNames
from holdfast._values.scope_name import scope_prefix

AfterSave: TypeAlias = Callable[[Context], Awaitable[None]]


def scoped(
    context: Context, scope: str, *, is_borrowed: bool, timer: Callable[[], float]
) -> Context:
    """A part of a store; closing it leaves a store that ``is_borrowed`` open."""
    names = ScopeNames(scope_prefix(scope))
    layer = ScopeLayer(context.backend, names, is_borrowed=is_borrowed, timer=timer)
    return replace(
        context,
        backend=layer,
        # No name has NUL: what a store without the scope keeps has other keys.
        cache=CachePart(context.cache, f"\0{names.prefix}"),
        after_save=_retention_of(context) if is_borrowed else context.after_save,
        keys=context.keys and ScopeKeys(context.keys, names),
    )


def scoped_alike(scope: Context, context: Context) -> Context:
    """The same scope over another context of the same store."""
    assert isinstance(scope.backend, ScopeLayer)
    backend = scope.backend.over(context.backend)
    return replace(scope, backend=backend, after_save=_retention_of(context))


def _retention_of(context: Context) -> AfterSave | None:
    """The retention that a store was opened with: it is about the whole store."""
    after_save = context.after_save
    if after_save is None:
        return None

    async def apply(_: Context) -> None:
        await after_save(context)

    return apply
