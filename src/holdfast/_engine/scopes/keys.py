"""The keys of an encrypted store as a scope may use them."""

from __future__ import annotations

from holdfast._engine.scopes.names import ScopeNames
from holdfast._port import Encrypted
from holdfast._port.layer import Layer
from holdfast._values.caller_key import CallerKey
from holdfast.errors import Unsupported


class ScopeKeys(Layer):
    """As the layer that encrypts; an owner has a key of his own in each scope."""

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
        """Make all that the scope holds of an owner unreadable."""
        if owner is None:
            # Threads without an owner have one key in the whole store.
            raise self._whole_store()
        return await self._keys.destroy(self._names.put(owner))

    def belongs(self, family: int, owner: str) -> bool:
        """Whether no key but the owner's decrypts what was read of a family."""
        return self._keys.belongs(family, self._names.put(owner))

    @staticmethod
    def _whole_store() -> Unsupported:
        text = "this key is that of the whole store; open it without a scope"
        return Unsupported(text, code="whole_store")
