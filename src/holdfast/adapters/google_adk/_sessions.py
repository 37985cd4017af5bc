"""Sessions of the framework as threads of a store."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.platform import uuid as platform_uuid
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import (
    GetSessionConfig,
    ListSessionsResponse,
)

from holdfast import Checkpoint, Page
from holdfast.adapters.google_adk import _stored_sessions
from holdfast.adapters.google_adk._events import (
    MESSAGES,
    Scopes,
    events_of,
    events_text,
    merged,
    state_of,
    stored_event,
)
from holdfast.adapters.google_adk._held_session import HeldSession
from holdfast.adapters.google_adk._names import SessionKey
from holdfast.adapters.google_adk._session_change import SessionChange, commit
from holdfast.adapters.google_adk._store_user import StoreUser
from holdfast.adapters.google_adk._stored_sessions import SessionsQuery, StoredSession
from holdfast.errors import Conflict
from holdfast.operations.stores import settled

# The framework raises this before 2.7, which adds a type for it.
StaleSession: type[ValueError] = getattr(
    import_module("google.adk.errors"), "StaleSessionError", ValueError
)
# How many of the last events are read first to find those since a time.
SOME_EVENTS = 64


class HoldfastSessionService(StoreUser, BaseSessionService):
    """Keeps the sessions of the Agent Development Kit in a store.

    ``store`` is a `holdfast.Store`, a `holdfast.AsyncStore`, or an address, which is
    opened with the options of `holdfast.open` and closed by `close`. Every event is a
    checkpoint of the thread `session_thread`, in one transaction with the changes of
    state that it makes, and durable when `append_event` returns.
    """

    # --- sessions ---------------------------------------------------------------------

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        """Create a session; `AlreadyExistsError` if there is one with this id."""
        id_ = (session_id or "").strip() or platform_uuid.new_uuid()
        key = SessionKey(app_name, user_id, id_)
        change = SessionChange(key, [], Scopes.of(state), None)
        try:
            head = await settled(commit(self._store, change))
        except Conflict as conflict:
            raise AlreadyExistsError(f"session {id_!r} exists already") from conflict
        read = self._store.runner.run
        app = await read(_stored_sessions.shared_values, key.app_thread)
        user = await read(_stored_sessions.shared_values, key.user_thread)
        return _held(StoredSession(key, head, change.scopes.session, app, user))

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        """A session with its events in the order in which they were appended.

        With a limit or a time in ``config`` only the last events are read.
        """
        key = SessionKey(app_name, user_id, session_id.strip())
        wanted = config or GetSessionConfig()
        is_whole = wanted.num_recent_events is None and wanted.after_timestamp is None
        find = _stored_sessions.find_session
        found = await self._store.runner.run(find, key, with_events=is_whole)
        if found is None:
            return None
        session = _held(found)
        if not is_whole:
            session.events = await self._recent(found, wanted)
        return session

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        """All sessions with their state and without events, oldest update first."""
        found = await self.recent_sessions(
            app_name=app_name, user_id=user_id, limit=None
        )
        oldest_first = list(reversed(found))
        oldest_first.sort(key=lambda session: session.last_update_time)
        return ListSessionsResponse(sessions=oldest_first)

    async def recent_sessions(
        self,
        *,
        app_name: str,
        user_id: str | None = None,
        limit: int | None = 100,
        after: int | None = None,
    ) -> Page[Session]:
        """Sessions with their state and without events, last used first, in pages.

        ``after`` is the cursor of the page before. A page takes the same time however
        many sessions there are.
        """
        query = SessionsQuery(app=app_name, user=user_id, limit=limit, after=after)
        page = await self._store.runner.run(_stored_sessions.list_sessions, query)
        return Page(tuple(map(_held, page)), page.cursor)

    async def delete_session(
        self, *, app_name: str, user_id: str, session_id: str
    ) -> None:
        """Delete a session with its history; its artifacts and memories stay."""
        key = SessionKey(app_name, user_id, session_id.strip())
        await settled(self._store.delete(key.thread))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state that all sessions of a user share, without the prefix."""
        thread = SessionKey(app_name, user_id, "").user_thread
        read = _stored_sessions.shared_values
        return state_of(await self._store.runner.run(read, thread))

    # --- events -----------------------------------------------------------------------

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event and apply its change of the state, all or nothing.

        `StaleSessionError` if the stored session differs from the one that ``session``
        was loaded from: another worker appended to it, or it was rewound. Load it again
        then.
        """
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        await settled(self._append(session, event))
        return event

    async def _append(self, session: Session, event: Event) -> None:
        key = SessionKey(session.app_name, session.user_id, session.id)
        if isinstance(session, HeldSession):
            async with session.turns:
                session.head = await self._append_after(session.head, key, event)
                self._show(session, event, session.head)
        else:
            head = await self._known_head(key, session)
            self._show(session, event, await self._append_after(head, key, event))

    def _show(self, session: Session, event: Event, saved: Checkpoint) -> None:
        """Add a stored event to the caller's session."""
        session.last_update_time = _seconds(saved)
        self._update_session_state(session, event)
        session.events.append(event)

    async def _append_after(
        self, head: Checkpoint, key: SessionKey, event: Event
    ) -> Checkpoint:
        scopes = Scopes.of(event.actions.state_delta)
        messages = [stored_event(event)]
        change = SessionChange(key, messages, scopes, head)
        try:
            return await commit(self._store, change)
        except Conflict as conflict:
            if conflict.found is None:
                raise _missing(key) from conflict
            raise _stale(key) from conflict

    async def _known_head(self, key: SessionKey, session: Session) -> Checkpoint:
        """The head for a session that was not loaded here, but made from JSON.

        `StaleSessionError` unless it ends with the same event as the stored session.
        """
        thread = self._store.thread(key.thread)
        head = await thread.head
        if head is None:
            raise _missing(key)
        stored = await thread.tail(MESSAGES, 1, ref=head)
        if [m["id"] for m in stored] != [event.id for event in session.events[-1:]]:
            raise _stale(key)
        return head

    async def _recent(
        self, found: StoredSession, wanted: GetSessionConfig
    ) -> list[Event]:
        """The last events of a session by the count and the time of a config."""
        most, since = wanted.num_recent_events, wanted.after_timestamp
        thread = self._store.thread(found.key.thread)
        count = SOME_EVENTS if most is None else most
        while True:
            messages = await thread.tail(MESSAGES, count, ref=found.head)
            events = _since(since, events_of(events_text(messages)))
            if most is not None or len(messages) < count or len(events) < count:
                return events
            count *= 4


def _since(time: float | None, events: list[Event]) -> list[Event]:
    """The events after the last one that is older than a time."""
    if time is None:
        return events
    before = [n for n, event in enumerate(events) if event.timestamp < time]
    return events[before[-1] + 1 :] if before else events


def _held(found: StoredSession) -> HeldSession:
    key = found.key
    session = HeldSession(
        id=key.session,
        app_name=key.app,
        user_id=key.user,
        state=merged(found.values, found.app, found.user),
        events=events_of(found.events),
        last_update_time=_seconds(found.head),
    )
    session.head = found.head
    return session


def _seconds(saved: Checkpoint) -> float:
    return saved.saved_at / 1e6


def _missing(key: SessionKey) -> SessionNotFoundError:
    return SessionNotFoundError(f"session {key.session!r} was deleted or never created")


def _stale(key: SessionKey) -> ValueError:
    return StaleSession(
        f"session {key.session!r} was changed since it was loaded, and the event was"
        " not appended; get the session again and run the turn again"
    )
