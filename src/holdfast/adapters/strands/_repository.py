"""Sessions of Strands: each agent in a thread, with its messages and its state."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Unpack

from strands.multiagent.base import MultiAgentBase
from strands.session.session_repository import SessionRepository
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

from holdfast import Checkpoint, Thread
from holdfast.adapters.strands import _names
from holdfast.adapters.strands._failures import of_session
from holdfast.adapters.strands._messages import MESSAGES, element, position, restored
from holdfast.adapters.strands._plain import plain
from holdfast.operations import OpenOptions
from holdfast.operations.stores import BlockingStore, StoreOrAddress

AGENT_FIELDS = [field.name for field in fields(SessionAgent)]


class HoldfastSessionRepository(SessionRepository):
    """A blocking repository for Strands' `RepositorySessionManager`.

    ``store`` is a `Store`, an `AsyncStore` over a file, or an address, which is opened
    with the options of `holdfast.open`.

    The repository remembers which checkpoint of an agent it has read or written last.
    If another repository has written to the agent since, every change is refused with a
    `SessionException` until the agent is read again. So give each session manager a
    repository of its own; they can share a store.
    """

    def __init__(self, store: StoreOrAddress, **options: Unpack[OpenOptions]) -> None:
        self._used = BlockingStore(store, "Strands", **options)
        self._store = self._used.store
        self._seen: dict[str, Checkpoint] = {}

    def close(self) -> None:
        """Close the store if it was opened here."""
        self._used.close()

    def thread(self, session_id: str, agent_id: str = "default") -> Thread:
        """The thread of an agent, for its history: fork, rewind, diff."""
        name = _names.agent_name(session_id, agent_id)
        return self._store.thread(name, kind=_names.AGENT, agent=agent_id or None)

    # --- sessions ---------------------------------------------------------------------

    def create_session(self, session: Session, **kwargs: Any) -> Session:
        """Create a session; `SessionException` if there is one with its id."""
        del kwargs
        with of_session(f"session {session.session_id!r}"):
            thread = self._session(session.session_id)
            if thread.head is not None:
                raise SessionException(f"session {session.session_id!r} exists already")
            thread.save(plain(vars(session)), expect=None)
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        """A session, also if only a fork of an agent's thread exists."""
        del kwargs
        with of_session(f"session {session_id!r}"):
            thread = self._session(session_id)
            if thread.head is not None:
                return Session.from_dict(thread.load())
            forks = self._store.threads(prefix=f"{thread.id}/", limit=1)
            if not forks:
                return None
            times = self._store.thread(forks[0].id).values("created_at", "updated_at")
            return Session(session_id, SessionType.AGENT, **times)

    def delete_session(self, session_id: str, **kwargs: Any) -> None:
        """Delete a session with all its agents."""
        del kwargs
        with of_session(f"session {session_id!r}"):
            name = self._session(session_id).id
            if not self._store.delete(name, prefix=f"{name}/"):
                raise SessionException(f"session {session_id!r} does not exist")
        self._seen.clear()

    # --- agents -----------------------------------------------------------------------

    def create_agent(
        self, session_id: str, session_agent: SessionAgent, **kwargs: Any
    ) -> None:
        """Create an agent; `SessionException` if the session has one with its id."""
        del kwargs
        with of_session(_agent(session_id, session_agent.agent_id)):
            thread = self.thread(session_id, session_agent.agent_id)
            state: dict[str, Any] = {MESSAGES: [], **plain(vars(session_agent))}
            self._seen[thread.id] = thread.save(state, expect=None)

    def read_agent(
        self, session_id: str, agent_id: str, **kwargs: Any
    ) -> SessionAgent | None:
        """An agent; later changes are made on top of the checkpoint that this read."""
        del kwargs
        with of_session(_agent(session_id, agent_id)):
            thread = self.thread(session_id, agent_id)
            head = thread.head
            if head is None:
                self._seen.pop(thread.id, None)
                return None
            self._seen[thread.id] = head
            return SessionAgent.from_dict(thread.values(*AGENT_FIELDS, ref=head))

    def update_agent(
        self, session_id: str, session_agent: SessionAgent, **kwargs: Any
    ) -> None:
        """Set the state of an agent; nothing is saved if only its time differs."""
        del kwargs
        what = _agent(session_id, session_agent.agent_id)
        with of_session(what):
            thread = self.thread(session_id, session_agent.agent_id)
            head = self._head(thread, what)
            before = thread.values(*AGENT_FIELDS, ref=head)
            session_agent.created_at = before["created_at"]
            after = plain(vars(session_agent))
            new = {name: after[name] for name in after if after[name] != before[name]}
            if new.keys() - {"updated_at"}:
                self._seen[thread.id] = thread.amend(values=new, expect=head)

    # --- messages ---------------------------------------------------------------------

    def create_message(
        self,
        session_id: str,
        agent_id: str,
        session_message: SessionMessage,
        **kwargs: Any,
    ) -> None:
        """Append a message; `SessionException` unless its id is the next one."""
        del kwargs
        what = _agent(session_id, agent_id)
        with of_session(what):
            thread = self.thread(session_id, agent_id)
            head = self._head(thread, what)
            number = _count(thread, head)
            if session_message.message_id != number:
                raise SessionException(
                    f"message {session_message.message_id} of {what} cannot be added:"
                    f" the next one is {number}; make the agent anew"
                )
            new = [element(session_message)]
            self._seen[thread.id] = thread.amend(lists={MESSAGES: new}, expect=head)

    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **kwargs: Any
    ) -> SessionMessage | None:
        """A message by its number, ``None`` if there is none."""
        del kwargs
        with of_session(_agent(session_id, agent_id)):
            thread = self.thread(session_id, agent_id)
            head = thread.head
            found = [] if head is None else _from(thread, head, message_id)
            return restored(found[0]) if found else None

    def update_message(
        self,
        session_id: str,
        agent_id: str,
        session_message: SessionMessage,
        **kwargs: Any,
    ) -> None:
        """Replace a message. The old one stays in the history of the thread."""
        del kwargs
        what = _agent(session_id, agent_id)
        with of_session(what):
            thread = self.thread(session_id, agent_id)
            head = self._head(thread, what)
            number, state = session_message.message_id, thread.load(head)
            if not 0 <= number < len(state[MESSAGES]):
                raise SessionException(f"message {number} of {what} does not exist")
            session_message.created_at = restored(state[MESSAGES][number]).created_at
            state[MESSAGES][number] = element(session_message)
            self._seen[thread.id] = thread.save(state, expect=head)

    def list_messages(
        self,
        session_id: str,
        agent_id: str,
        limit: int | None = None,
        offset: int = 0,
        **kwargs: Any,
    ) -> list[SessionMessage]:
        """The messages after the first ``offset``, at most ``limit``."""
        del kwargs
        what = _agent(session_id, agent_id)
        with of_session(what):
            thread = self.thread(session_id, agent_id)
            head = thread.head
            if head is None:
                raise SessionException(f"{what} does not exist")
            found = _from(thread, head, offset)
            return [restored(stored) for stored in found[:limit]]

    # --- graphs and swarms ------------------------------------------------------------

    def create_multi_agent(
        self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any
    ) -> None:
        """Create the state of a graph or swarm."""
        del kwargs
        with of_session(_agent(session_id, multi_agent.id)):
            thread = self._multi_agent(session_id, multi_agent.id)
            state = plain(multi_agent.serialize_state())
            self._seen[thread.id] = thread.save(state, expect=None)

    def read_multi_agent(
        self, session_id: str, multi_agent_id: str, **kwargs: Any
    ) -> dict[str, Any] | None:
        """The state of a graph or swarm, ``None`` if there is none."""
        del kwargs
        with of_session(_agent(session_id, multi_agent_id)):
            thread = self._multi_agent(session_id, multi_agent_id)
            head = thread.head
            if head is None:
                return None
            self._seen[thread.id] = head
            found: dict[str, Any] = thread.load(head)
            return found

    def update_multi_agent(
        self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any
    ) -> None:
        """Set the state of a graph or swarm."""
        del kwargs
        what = _agent(session_id, multi_agent.id)
        with of_session(what):
            thread = self._multi_agent(session_id, multi_agent.id)
            head = self._head(thread, what)
            state = plain(multi_agent.serialize_state())
            saved = thread.save(state, expect=head, if_changed=True)
            self._seen[thread.id] = saved

    # --- within -----------------------------------------------------------------------

    def _session(self, session_id: str) -> Thread:
        name = _names.session_name(session_id)
        return self._store.thread(name, kind=_names.SESSION)

    def _multi_agent(self, session_id: str, id_: str) -> Thread:
        name = _names.multi_agent_name(session_id, id_)
        return self._store.thread(name, kind=_names.MULTI_AGENT)

    def _head(self, thread: Thread, what: str) -> Checkpoint:
        """The checkpoint that a change is made on top of."""
        head = self._seen.get(thread.id) or thread.head
        if head is None:
            raise SessionException(f"{what} does not exist")
        self._seen[thread.id] = head
        return head


def _agent(session_id: str, agent_id: str) -> str:
    return f"agent {agent_id!r} of session {session_id!r}"


def _count(thread: Thread, head: Checkpoint) -> int:
    last = thread.tail(MESSAGES, 1, ref=head)
    return position(last[0]) + 1 if last else 0


def _from(thread: Thread, head: Checkpoint, start: int) -> list[dict[str, Any]]:
    """The messages from a number on, as they are stored."""
    wanted = _count(thread, head) - start
    return thread.tail(MESSAGES, wanted, ref=head) if wanted > 0 else []
