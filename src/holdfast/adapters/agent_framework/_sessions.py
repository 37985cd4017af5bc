"""The sessions of agents, for hosts that keep them between requests."""

from __future__ import annotations

from typing import Any, Unpack

from agent_framework import AgentSession, SessionStore

from holdfast import AsyncThread
from holdfast.errors import Conflict, NotFound
from holdfast.operations import OpenOptions
from holdfast.operations.names import escaped
from holdfast.operations.stores import StoreOrAddress, UsedStore, settled
from holdfast.operations.transcripts import fields_of

KIND = "session"
_STATE, _MESSAGES = "state", "messages"
# The framework's in-memory provider keeps the messages of a session under this key.
_PROVIDER = "in_memory"


class HoldfastSessionStore(SessionStore):
    """A `SessionStore`: each `set` is a checkpoint, which can be rewound.

    ``store`` and ``scope`` are as with `HoldfastCheckpointStorage`. Objects in the
    state of a session are stored if `register_state_type` knows their classes.
    """

    def __init__(self, store: StoreOrAddress, **options: Unpack[OpenOptions]) -> None:
        super().__init__()
        self._used = UsedStore(store, **options)
        self._store = self._used.awaited

    async def close(self) -> None:
        """Close the store if it was opened here."""
        await self._used.close()

    async def get(self, session_id: str) -> AgentSession | None:
        """The session as it was stored last, ``None`` if there is none."""
        try:
            values = await self._thread(session_id).load()
        except NotFound:
            return None
        return AgentSession.from_dict(_fields(values))

    async def set(self, session_id: str, session: AgentSession) -> None:
        """Store a session, durable when this returns."""
        values = _values(session.to_dict())
        await settled(_replaced(self._thread(session_id), values))

    async def delete(self, session_id: str) -> None:
        """Delete a session and its history, if there is one."""
        await settled(self._thread(session_id).delete())

    def _thread(self, session_id: str) -> AsyncThread:
        self.validate_session_id(session_id)
        return self._store.thread(f"{KIND}:{escaped(session_id)}", kind=KIND)


async def _replaced(thread: AsyncThread, values: dict[str, Any]) -> None:
    try:
        await thread.save(values, if_changed=True)
    except Conflict as conflict:
        if conflict.code != "thread_deleted":
            raise
        await thread.save(values, expect=None)


def _values(session: dict[str, Any]) -> dict[str, Any]:
    """A session as values; its messages become a list that is stored by elements."""
    state: dict[str, Any] = session[_STATE]
    provider = fields_of(state.get(_PROVIDER))
    messages = provider.get(_MESSAGES)
    if not isinstance(messages, list):
        return session
    rest = {name: value for name, value in provider.items() if name != _MESSAGES}
    return {**session, _STATE: {**state, _PROVIDER: rest}, _MESSAGES: messages}


def _fields(values: dict[str, Any]) -> dict[str, Any]:
    if _MESSAGES not in values:
        return values
    state = values[_STATE]
    provider = {**state[_PROVIDER], _MESSAGES: values[_MESSAGES]}
    return {**values, _STATE: {**state, _PROVIDER: provider}}
