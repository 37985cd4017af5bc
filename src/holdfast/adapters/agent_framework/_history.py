"""The histories of sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agent_framework import HistoryProvider, Message

from holdfast import AsyncThread
from holdfast.adapters.agent_framework._types import Types
from holdfast.errors import Conflict, NotFound
from holdfast.operations.names import escaped
from holdfast.operations.stores import StoreOrAddress, UsedStore, settled

KIND = "history"
SOURCE = "holdfast"
_MESSAGES = "messages"


class HoldfastHistoryProvider(HistoryProvider):
    """A history for ``Agent(context_providers=[...])``, one thread for each session.

    ``store`` is an address, or a `Store` or `AsyncStore`. ``scope`` keeps the sessions
    of one tenant or user apart, ``allow`` are classes that results of tools have. The
    other options are those of `HistoryProvider`. Providers with another ``source_id``
    have other histories.

    The messages of a run are one checkpoint. Two runs that append at once are both
    kept.
    """

    def __init__(
        self,
        store: StoreOrAddress,
        source_id: str = SOURCE,
        *,
        scope: str | None = None,
        allow: Iterable[type] = (),
        **options: Any,
    ) -> None:
        super().__init__(source_id, **options)
        self._types = Types(allow)
        self._used = UsedStore(store, scope=scope)
        self._store = self._used.awaited

    async def close(self) -> None:
        """Close the store if it was opened here."""
        await self._used.close()

    async def get_messages(
        self,
        session_id: str | None,
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> list[Message]:
        """All messages of a session, oldest first."""
        del state, kwargs  # what is stored does not depend on them
        try:
            found = await self._thread(session_id).elements(_MESSAGES, limit=None)
        except NotFound:
            return []
        return [self._types.revive(message) for message in found]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Append messages to a session, all of them or none."""
        del state, kwargs
        if messages:
            added: Any = self._types.plain(list(messages), _MESSAGES)
            await settled(_appended(self._thread(session_id), {_MESSAGES: added}))

    def _thread(self, session_id: str | None) -> AsyncThread:
        name = KIND
        if self.source_id != SOURCE:
            name += f"/{escaped(self.source_id)}"
        # Without a session all runs share one history, as in the shipped provider.
        if session_id is not None:
            name += f":{escaped(session_id)}"
        return self._store.thread(name, kind=KIND)


async def _appended(thread: AsyncThread, lists: dict[str, Any]) -> None:
    """Append to a history; one that a person or retention deleted is created again."""
    while True:
        try:
            await thread.amend(lists=lists)
        except Conflict as conflict:
            if conflict.code != "thread_deleted":
                raise
        else:
            return
        try:
            await thread.amend(lists=lists, expect=None)
        except Conflict:
            continue  # another run was first to begin it again
        return
