"""Memories of the framework as messages, found by the search of the store."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from google.adk.events import Event
from google.adk.memory import BaseMemoryService
from google.adk.memory.base_memory_service import SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.platform import uuid as platform_uuid
from google.adk.sessions import Session
from pydantic_core import to_json

from holdfast import Match
from holdfast.adapters.google_adk._names import (
    MEMORY,
    escaped,
    name_of,
    parts_of,
    unescaped,
)
from holdfast.adapters.google_adk._store_user import StoreUser
from holdfast.errors import Conflict
from holdfast.operations.stores import settled

Memory = dict[str, Any]

MESSAGES = "messages"
# The ids of memories that were deleted, so that their session does not bring them back.
FORGOTTEN = "forgotten"
# How many memories a search gives, and how many matches of each word it looks at.
MOST_MEMORIES = 10
MOST_MATCHES = 50
MOST_WORDS = 16
# Words shorter than this are in most texts.
SHORT = 3


class HoldfastMemoryService(StoreUser, BaseMemoryService):
    """Keeps the memories of the Agent Development Kit in a store.

    ``store`` is as for `HoldfastSessionService`, and may be the same. A memory is a
    copy: it stays when its session is deleted or rewound.
    """

    async def add_session_to_memory(self, session: Session) -> None:
        """Remember the events of a session; they replace its earlier memories."""
        added = [_remembered(event) for event in session.events if _says(event)]
        place = (session.app_name, session.user_id, session.id)
        await settled(self._change(place, lambda _: added))

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember some events, each once; nothing reads ``custom_metadata``."""
        del custom_metadata
        added = [_remembered(event) for event in events if _says(event)]
        place = (app_name, user_id, session_id or "")
        await settled(self._change(place, lambda before: _joined(before, added)))

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Remember texts; ``custom_metadata`` is for those without their own."""
        added: list[Memory] = []
        for entry in memories:
            memory = entry.model_dump(mode="json", exclude_none=True)
            memory["id"] = entry.id or platform_uuid.new_uuid()
            memory["author"] = entry.author or ""
            memory["custom_metadata"] = {
                **(custom_metadata or {}),
                **entry.custom_metadata,
            }
            added.append(memory)
        place = (app_name, user_id, "")
        await settled(self._change(place, lambda before: _joined(before, added)))

    async def search_memory(
        self, *, app_name: str, user_id: str, query: str
    ) -> SearchMemoryResponse:
        """The ten memories of a user with the most words of a query, newest first.

        A word also matches inside of longer ones. A rare word counts up to twice as
        much; words of one or two letters count only if the query has no others.
        """
        words = _words(query)
        found: dict[tuple[str, int], Match] = {}
        score: dict[tuple[str, int], float] = {}
        # All words at once come first: if each word has many matches, some memories may
        # have all words.
        for text in dict.fromkeys([" ".join(words), *words] if words else []):
            matches = await self._matches(app_name, user_id, text)
            for match in matches:
                place = (match.thread, match.position)
                found.setdefault(place, match)
                score[place] = score.get(place, 0) + 1 + 1 / len(matches)
        best = sorted(found, key=lambda place: -score[place])[:MOST_MEMORIES]
        return SearchMemoryResponse(memories=[_entry(found[place]) for place in best])

    async def delete_memory(
        self, *, app_name: str, user_id: str, memory_id: str | None = None
    ) -> None:
        """Delete a memory for good: adding its session again does not restore it."""
        session, _, id_ = (memory_id or "").partition("/")
        if id_:
            place = (app_name, user_id, unescaped(session))
            await settled(self._change(place, lambda before: before, forget=id_))

    # --- within -----------------------------------------------------------------------

    async def _matches(self, app: str, user: str, text: str) -> Sequence[Match]:
        return await self._store.search(
            text, agent=name_of(MEMORY, app), owner=user or None, limit=MOST_MATCHES
        )

    async def _change(
        self,
        place: tuple[str, str, str],
        change: Callable[[list[Memory]], list[Memory]],
        forget: str | None = None,
    ) -> None:
        """Change the memories of a session."""
        app, user, _ = place
        thread = self._store.thread(
            name_of(MEMORY, *place),
            kind=MEMORY,
            owner=user or None,
            agent=name_of(MEMORY, app),
        )
        while True:
            head = await thread.head
            before: dict[str, Any] = await thread.load(head) if head else {}
            forgotten = [*before.get(FORGOTTEN, []), *([forget] if forget else [])]
            changed = change(before.get(MESSAGES, []))
            kept = [memory for memory in changed if memory["id"] not in forgotten]
            after = {MESSAGES: kept, FORGOTTEN: forgotten}
            try:
                await thread.save(after, expect=head, if_changed=True)
            except Conflict:
                continue  # another worker was first
            return


def _says(event: Event) -> bool:
    return bool(event.content and event.content.parts)


def _remembered(event: Event) -> Memory:
    fields = event.model_dump(
        mode="json", exclude_none=True, include={"id", "author", "content"}
    )
    time = datetime.fromtimestamp(event.timestamp, UTC)
    return {**fields, "timestamp": time.isoformat()}


def _joined(before: list[Memory], added: list[Memory]) -> list[Memory]:
    """All memories, each once by its id."""
    return list({memory["id"]: memory for memory in [*added, *before]}.values())


def _words(query: str) -> list[str]:
    words = list(dict.fromkeys(re.findall(r"\w+", query.lower())))
    telling = [word for word in words if len(word) >= SHORT or not word.isascii()]
    return (telling or words)[:MOST_WORDS]


def _entry(match: Match) -> MemoryEntry:
    memory = cast("Memory", match.message)
    session = parts_of(match.thread)[-1]
    id_, author = f"{escaped(session)}/{memory['id']}", memory["author"] or None
    fields = {**memory, "id": id_, "author": author}
    # From JSON: only then the model decodes bytes from text.
    return MemoryEntry.model_validate_json(to_json(fields))
