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
from holdfast._values.caller_key import KEY_SIZE, OwnerSecrets
from holdfast.errors import Corrupt, Unsupported
from holdfast.keys._caller_key import FORM, StoreKey
from holdfast.keys._ciphers import (
    ID,
    ContentCipher,
    ContentKey,
    NameCipher,
    derive,
)

SALT = 12
SIV_KEY = 64
# The rest of a destroyed key.
DESTROYED = b"destroyed"
# The prefix of a key that is wrapped with a secret of the owner too, also when it is
# destroyed.
SECRET = b"+"
# A key that is wrapped without one may begin with the same byte: the size differs.
WRAPPED = KEY_SIZE + 8


class KeyRing:
    """The keys that the store's key gives, and the ciphers that use them.

    The keys of owners stand in settings, wrapped by the store's key. They are read and
    made over ``backend`` itself: in a caller's transaction, a key could be rolled back
    after contents were encrypted with it. If the caller's key has ``secrets``, the key
    of an owner is wrapped with the owner's secret too.
    """

    def __init__(
        self, backend: Backend, store: StoreKey, secrets: OwnerSecrets | None = None
    ) -> None:
        self._backend = backend
        self.store = store
        self.secrets = secrets
        # The ids of keys that contents need and that were found to be destroyed.
        self.destroyed: set[bytes] = set()
        self.names = NameCipher(derive(store.secret, "names", size=SIV_KEY))
        self.contents = ContentCipher()
        self.seal_key = derive(store.secret, "seal")
        self.move_key = derive(store.secret, "moves")
        self._ids = derive(store.secret, "key ids")
        self._salts = derive(store.secret, "families")

    @property
    def has_proofs(self) -> bool:
        """True if all moves of the store have proofs."""
        return self.store.form == FORM

    def is_of(self, key: ContentKey, owner: str | None) -> bool:
        """True if the key is one of this owner's."""
        return key.id[:-1] == self._owner_id(owner)

    def _owner_id(self, owner: str | None) -> bytes:
        text = b"" if owner is None else b"owner " + owner.encode()
        return hmac.digest(self._ids, text, "sha256")[: ID - 1]

    def salt(self, name: str | int) -> bytes:
        """The salt that the contents of a new family are bound to.

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
                wrapped = self._new(id_, has_owner=owner is not None)
                # Of several processes the first decides.
                decided = await self._backend.setting(setting_name(id_), wrapped)
                return self._take(id_, decided)
            if not self._is_destroyed(id_, found):
                return self._take(id_, found)
        raise Unsupported("the keys of this owner were destroyed 255 times")

    def _new(self, id_: bytes, *, has_owner: bool) -> bytes:
        """A new key, wrapped; what has no owner cannot be destroyed by itself."""
        mark, secret = b"", b""
        if self.secrets is not None and has_owner:
            mark, secret = SECRET, self.secrets.make_secret(id_.hex())
        return mark + aes_key_wrap(self._wrapping(id_, secret), os.urandom(KEY_SIZE))

    def _is_destroyed(self, id_: bytes, found: bytes) -> bool:
        if not _needs_secret(found):
            return found == DESTROYED
        return found == SECRET + DESTROYED or not self._secret(id_)

    def _secret(self, id_: bytes) -> bytes | None:
        if self.secrets is None:
            text = "the key of an owner needs the key with the secrets of owners"
            raise Unsupported(text, code="wrong_key")
        return self.secrets.find_secret(id_.hex())

    async def destroy(self, owner: str | None) -> bool:
        """Make all contents of an owner unreadable.

        Later saves for the owner get another key. A copy of the store that was made
        before has the key still, unless it was wrapped with a secret: gives whether all
        of them were.
        """
        needed_secrets = self.secrets is not None
        async for id_, found in self._generations(owner):
            if found is None:
                break
            mark = SECRET if _needs_secret(found) else b""
            needed_secrets &= bool(mark)
            if self.secrets is not None and mark:
                self.secrets.destroy_secret(id_.hex())
            left = mark + DESTROYED
            await self._backend.setting(setting_name(id_), left, replace=True)
            self.contents.drop(id_)
        return needed_secrets

    async def _generations(
        self, owner: str | None
    ) -> AsyncIterator[tuple[bytes, bytes | None]]:
        """The ids of an owner's keys, oldest first, with what is stored of each."""
        for generation in range(1, 256):
            id_ = self._owner_id(owner) + bytes([generation])
            yield id_, await self._backend.setting(setting_name(id_))

    async def load(self, id_: bytes) -> None:
        """Take the key that contents were encrypted with.

        The first time that it turns out to be destroyed this is only noted: what can do
        without the content tries again. The next time it is `Corrupt`.
        """
        found = await self._backend.setting(setting_name(id_))
        is_destroyed = found is not None and self._is_destroyed(id_, found)
        if is_destroyed and id_ not in self.destroyed:
            self.destroyed.add(id_)
        else:
            self._take(id_, found)

    def _take(self, id_: bytes, wrapped: bytes | None) -> ContentKey:
        what = f"the key {id_.hex()}"
        if wrapped is None:
            raise Corrupt(what, "it is missing")
        if self._is_destroyed(id_, wrapped):
            raise Corrupt(what, "it was destroyed")
        secret = b""
        if _needs_secret(wrapped):
            secret, wrapped = self._secret(id_) or b"", wrapped.removeprefix(SECRET)
        wrapping = self._wrapping(id_, secret)
        try:
            key = ContentKey(id_, aes_key_unwrap(wrapping, wrapped))
        except (InvalidUnwrap, ValueError):
            raise Corrupt(what, "it was changed") from None
        self.contents.add(key)
        return key

    def _wrapping(self, id_: bytes, secret: bytes) -> bytes:
        # One for each key, so that a wrapped key cannot take the place of another.
        return derive(self.store.secret + secret, "owner", id_)


def _needs_secret(found: bytes) -> bool:
    """True if the stored key was wrapped with a secret, too."""
    is_wrapped = found.startswith(SECRET) and len(found) == len(SECRET) + WRAPPED
    return is_wrapped or found == SECRET + DESTROYED


def setting_name(id_: bytes) -> str:
    """The setting that holds a wrapped key."""
    return f"key {id_.hex()}"
