"""One change of a session: events, and the state of three scopes, all or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast import AsyncStore, Checkpoint
from holdfast.adapters.google_adk._events import MESSAGES, Scopes
from holdfast.adapters.google_adk._names import APP, SESSION, USER, SessionKey
from holdfast.errors import Conflict


class SessionChange(msgspec.Struct, frozen=True):
    """The messages and values to save after ``head``; a new session has none."""

    key: SessionKey
    messages: list[dict[str, Any]]
    scopes: Scopes
    head: Checkpoint | None

    @property
    def shared(self) -> list[tuple[str, str, str | None, Mapping[str, Any]]]:
        """The other threads that change: name, kind, owner and values."""
        key, scopes = self.key, self.scopes
        both = [
            (key.app_thread, APP, None, scopes.app),
            (key.user_thread, USER, key.user or None, scopes.user),
        ]
        return [one for one in both if one[-1]]


async def commit(store: AsyncStore, change: SessionChange) -> Checkpoint:
    """Make a change; `Conflict` if the session does not have the expected head."""
    # The threads of scopes that were deleted and have to be created again.
    anew: set[str] = set()
    while True:
        try:
            return await _try(store, change, anew)
        except Conflict as conflict:
            if conflict.thread in (None, change.key.thread):
                raise
            anew ^= {conflict.thread}


async def _try(store: AsyncStore, change: SessionChange, anew: set[str]) -> Checkpoint:
    key, agent = change.key, change.key.app or None
    async with store.transaction() as tx:
        tx.thread(key.thread, kind=SESSION, owner=key.user or None, agent=agent).amend(
            lists={MESSAGES: change.messages},
            values=change.scopes.session,
            expect=change.head,
        )
        for name, kind, owner, values in change.shared:
            shared = tx.thread(name, kind=kind, owner=owner, agent=agent)
            if name in anew:
                shared.amend(values=values, expect=None)
            else:
                shared.amend(values=values)
    return tx.saved[key.thread]
