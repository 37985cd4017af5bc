"""The context of a scope: operations that get it see nothing else of the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec.structs import replace

from holdfast._engine.cache import CachePart
from holdfast._engine.context import Context
from holdfast._engine.scopes.layer import ScopeLayer
from holdfast._engine.scopes.names import ScopeNames
from holdfast._port import Encrypted
from holdfast._port.layer import Layer
from holdfast._values.caller_key import CallerKey
from holdfast._values.scope_name import scope_prefix
from holdfast.errors import Unsupported

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
        # No name of a thread has NUL, so the keys of the store in the cache differ.
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


class ScopeKeys(Layer):
    """The encrypting layer for a scope: an owner has a separate key in each scope."""

    def __init__(self, keys: Encrypted, names: ScopeNames) -> None:
        super().__init__(keys)
        self._keys, self._names = keys, names

    @property
    def key(self) -> CallerKey:
        return self._keys.key

    @key.setter
    def key(self, key: CallerKey) -> None:
        del key
        raise self._whole_store()

    @property
    def seal_key(self) -> bytes:
        return self._keys.seal_key

    async def rotate(self, key: CallerKey) -> None:
        del key
        raise self._whole_store()

    async def destroy(self, owner: str | None) -> bool:
        """Make the contents of an owner in the scope unreadable."""
        if owner is None:
            # Threads without an owner have one key in the whole store.
            raise self._whole_store()
        return await self._keys.destroy(self._names.put(owner))

    def belongs(self, family: int, owner: str) -> bool:
        """True if no key but the owner's decrypts what was read of a family."""
        return self._keys.belongs(family, self._names.put(owner))

    @staticmethod
    def _whole_store() -> Unsupported:
        text = "this key is that of the whole store; open it without a scope"
        return Unsupported(text, code="whole_store")
