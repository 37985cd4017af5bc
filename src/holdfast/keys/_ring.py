"""The keys of a store: one for names, one for each owner, one for what has none."""

from __future__ import annotations

import hmac
import os

from cryptography.hazmat.primitives.keywrap import (
    InvalidUnwrap,
    aes_key_unwrap,
    aes_key_wrap,
)

from holdfast._port import Backend
from holdfast._values.caller_key import KEY_SIZE
from holdfast.errors import Corrupt
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
        self.nobody = self.key_id(None)

    def key_id(self, owner: str | None) -> bytes:
        """What stands before the contents of an owner."""
        text = b"" if owner is None else b"owner " + owner.encode()
        return hmac.digest(self._ids, text, "sha256")[:ID]

    def salt(self, name: str | int) -> bytes:
        """What the contents of a new family are bound to.

        It follows from the name of the thread that begins the family, or from the
        family's number in a copy: of two processes that begin the same thread, both
        must get the same.
        """
        return hmac.digest(self._salts, repr(name).encode(), "sha256")[:SALT]

    def _wrapping(self, id_: bytes) -> bytes:
        # One for each owner, so that a wrapped key cannot take another's place.
        return derive(self.store.secret, "owner", id_)

    async def of_owner(self, owner: str | None) -> ContentKey:
        """The key for new contents of an owner; it is made if there is none.

        The setting is read each time, so that a key that was destroyed is not used for
        anything new by a process that still remembers it.
        """
        id_ = self.key_id(owner)
        name = setting_name(id_)
        found = await self._backend.setting(name)
        if not found:
            wrapped = aes_key_wrap(self._wrapping(id_), os.urandom(KEY_SIZE))
            found = await self._backend.setting(name, wrapped)
        return self._take(id_, found)

    async def load(self, id_: bytes) -> ContentKey:
        """The key that contents were encrypted with."""
        return self._take(id_, await self._backend.setting(setting_name(id_)))

    def _take(self, id_: bytes, wrapped: bytes | None) -> ContentKey:
        what = f"the key {id_.hex()}"
        if not wrapped:
            raise Corrupt(what, "it is missing")
        try:
            key = ContentKey(id_, aes_key_unwrap(self._wrapping(id_), wrapped))
        except (InvalidUnwrap, ValueError):
            raise Corrupt(what, "it was changed") from None
        self.contents.add(key)
        return key


def setting_name(id_: bytes) -> str:
    """The setting that holds a wrapped key."""
    return f"key {id_.hex()}"
