"""The session store: the SDK's six methods, and the thread of a session."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Self, Unpack, cast

from claude_agent_sdk import (
    ClaudeSDKError,
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
)

from holdfast import AsyncThread
from holdfast.adapters.claude_agent_sdk import _append, _entries, _sessions
from holdfast.adapters.claude_agent_sdk._append import Batch
from holdfast.errors import Busy, NotFound
from holdfast.operations import OpenOptions
from holdfast.operations.claude import SUBAGENT, Transcript, last_part, together
from holdfast.operations.stores import StoreOrAddress, UsedStore, settled


class HoldfastSessionStore(SessionStore):
    """A store for ``ClaudeAgentOptions(session_store=...)``.

    ``store`` is a `Store` or an `AsyncStore`, which can be used for other things too,
    or an address, which is opened with the options of `holdfast.open`. Any number of
    processes can use the same store.

    Every batch is one checkpoint, saved as a whole or not at all, and durable when
    `append` returns. An entry is left out if the transcript has its id, so a batch can
    be sent again after any failure. A caller that is cancelled waits until the change
    is made or has failed.
    """

    def __init__(self, store: StoreOrAddress, **options: Unpack[OpenOptions]) -> None:
        self._used = UsedStore(store, **options)
        self._store = self._used.awaited

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the store if it was opened here."""
        await self._used.close()

    def thread(self, key: SessionKey) -> AsyncThread:
        """The thread of a session or of a subagent, for history, fork, rewind, diff."""
        return self._store.thread(Transcript.of(_fields(key)).thread)

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append the entries that the transcript does not have yet.

        The cost depends on the new entries only, not on the length of the transcript.
        """
        batch = Batch(Transcript.of(_fields(key)), _entries.checked(entries))
        if not batch.entries:
            return
        async with _retried_if_busy():
            await settled(self._store.runner.save(_append.append, batch))

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """All entries in order, ``None`` if there is no such transcript."""
        try:
            state = cast("dict[str, Any]", await self.thread(key).load())
        except NotFound:
            return None
        return cast("list[SessionStoreEntry]", together(state))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        """The sessions of a project, last used first; no two have the same time."""
        found = await self._store.runner.run(_sessions.sessions, project_key)
        return [session.entry() for session in found]

    async def list_session_summaries(
        self, project_key: str
    ) -> list[SessionSummaryEntry]:
        """The summaries of a project's sessions, last used first."""
        found = await self._store.runner.run(_sessions.sessions, project_key)
        return [summary for session in found for summary in session.summaries()]

    async def delete(self, key: SessionKey) -> None:
        """Delete a session with its subagents, or the transcript of one subagent."""
        transcript = Transcript.of(_fields(key))
        name = transcript.thread
        below = {"prefix": f"{name}/"} if transcript.subpath is None else {}
        async with _retried_if_busy():
            await settled(self._store.delete(name, **below))

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        """The subpaths of a session's subagents, last used first."""
        prefix = Transcript.of(_fields(key)).thread + "/"
        page = await self._store.threads(kind=SUBAGENT, prefix=prefix, limit=None)
        return [last_part(thread.id, prefix) for thread in page]


@asynccontextmanager
async def _retried_if_busy() -> AsyncGenerator[None]:
    """Turn `Busy` into an error that the SDK retries; it does not retry timeouts."""
    try:
        yield
    except Busy as busy:
        raise ClaudeSDKError(f"the store is busy: {busy}") from busy


def _fields(key: SessionKey | SessionListSubkeysKey) -> dict[str, object]:
    # A TypedDict is a dict that type checkers know by its keys only.
    return cast("dict[str, object]", key)
