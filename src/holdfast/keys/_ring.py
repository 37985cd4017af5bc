"""The keys of a store: one for names, one for each owner, one for what has none."""

from __future__ import annotations

import hmac
import os
from collections.abc import AsyncIterator

from cryptography.hazmat.primitives.keywrap import (
    InvalidUnwrap,
    aes_key_unwrap,
    aes_key_wrap,
)

from holdfast._port import Backend
from holdfast._values.caller_key import KEY_SIZE
from holdfast.errors import Corrupt, Unsupported
from holdfast.keys._caller_key import StoreKey
from holdfast.keys._ciphers import (
    ID,
    ContentCipher,
    ContentKey,
    NameCipher,
    derive,
)

SALT = 12
SIV_KEY = 64
# What is left of a key.
DESTROYED = b"destroyed"


class KeyRing:
    """The keys that the store's key gives, and the ciphers that use them.

    The keys of owners stand in settings, wrapped by the store's key. They are read and
    made over ``backend`` itself: in a caller's transaction, a key could be rolled back
    after contents were encrypted with it.
    """

    def __init__(self, backend: Backend, store: StoreKey) -> None:
        self._backend = backend
        self.store = store
        self.names = NameCipher(derive(store.secret, "names", size=SIV_KEY))
        self.contents = ContentCipher()
        self.seal_key = derive(store.secret, "seal")
        self._ids = derive(store.secret, "key ids")
        self._salts = derive(store.secret, "families")

    def is_of(self, key: ContentKey, owner: str | None) -> bool:
        """Whether a key is one of this owner's."""
        return key.id[:-1] == self._owner_id(owner)

    def _owner_id(self, owner: str | None) -> bytes:
        text = b"" if owner is None else b"owner " + owner.encode()
        return hmac.digest(self._ids, text, "sha256")[: ID - 1]

    def salt(self, name: str | int) -> bytes:
        """What the contents of a new family are bound to.

        It follows from the name of the thread that begins the family, or from the
        family's number in a copy: of two processes that begin the same thread, both
        must get the same.
        """
        return hmac.digest(self._salts, repr(name).encode(), "sha256")[:SALT]

    async def of_owner(self, owner: str | None) -> ContentKey:
        """The key for new contents of an owner; it is made if there is none.

        The setting is read each time, so that a key that was destroyed is not used for
        anything new by a process that still remembers it.
        """
        async for id_, found in self._generations(owner):
            if found is None:
                wrapped = aes_key_wrap(self._wrapping(id_), os.urandom(KEY_SIZE))
                # Of several processes the first decides.
                decided = await self._backend.setting(setting_name(id_), wrapped)
                return self._take(id_, decided)
            if found != DESTROYED:
                return self._take(id_, found)
        raise Unsupported("the keys of this owner were destroyed 255 times")

    async def destroy(self, owner: str | None) -> None:
        """Make all contents of an owner unreadable.

        What is saved for the owner afterwards gets another key. A copy of the store
        that was made before has the key still.
        """
        async for id_, found in self._generations(owner):
            if found is None:
                return
            await self._backend.setting(setting_name(id_), DESTROYED, replace=True)

    async def _generations(
        self, owner: str | None
    ) -> AsyncIterator[tuple[bytes, bytes | None]]:
        """The ids of an owner's keys, oldest first, with what is stored of each."""
        for generation in range(1, 256):
            id_ = self._owner_id(owner) + bytes([generation])
            yield id_, await self._backend.setting(setting_name(id_))

    async def load(self, id_: bytes) -> ContentKey:
        """The key that contents were encrypted with."""
        return self._take(id_, await self._backend.setting(setting_name(id_)))

    def _take(self, id_: bytes, wrapped: bytes | None) -> ContentKey:
        what = f"the key {id_.hex()}"
        if wrapped is None:
            raise Corrupt(what, "it is missing")
        if wrapped == DESTROYED:
            raise Corrupt(what, "it was destroyed")
        try:
            key = ContentKey(id_, aes_key_unwrap(self._wrapping(id_), wrapped))
        except (InvalidUnwrap, ValueError):
            raise Corrupt(what, "it was changed") from None
        self.contents.add(key)
        return key

    def _wrapping(self, id_: bytes) -> bytes:
        # One for each key, so that a wrapped key cannot take the place of another.
        return derive(self.store.secret, "owner", id_)


def setting_name(id_: bytes) -> str:
    """The setting that holds a wrapped key."""
    return f"key {id_.hex()}"
