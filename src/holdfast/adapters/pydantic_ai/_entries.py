"""The places of conversations' entries, found by the ids of the entries alone.

An entry is an element of the list of messages of a thread, and stays one in every later
checkpoint, also of forks. The journal of one thread is an index of the checkpoints that
have an entry: the key is the id of the entry and that of the checkpoint, the value is
the thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from holdfast import AsyncStore
from holdfast.adapters.pydantic_ai._names import escaped
from holdfast.errors import NotFound

MESSAGES = "messages"
INDEX = "pydantic_ai_entries"
# A turn rarely adds more: an entry is one of the last in the checkpoint that added it.
SOME = 8

Entries = Sequence[dict[str, Any]]


class Place(NamedTuple):
    """A checkpoint that has an entry, and the thread that saved it."""

    thread: str
    checkpoint: str


class Found(NamedTuple):
    """The entries up to and including one; ``is_end`` if the checkpoint ends there."""

    place: Place
    entries: Entries
    is_end: bool


def index_rows(ids: Iterable[str], place: Place) -> dict[str, str]:
    """The rows of the index for entries of a checkpoint."""
    return {f"{_key(id_)}{place.checkpoint}": place.thread for id_ in ids}


def _key(id_: str) -> str:
    return escaped(id_, readable="") + "/"


def _up_to(entries: Entries, id_: str) -> Entries | None:
    for number, entry in enumerate(entries, 1):
        if entry["id"] == id_:
            return entries[:number]
    return None


class EntryIndex:
    """Finds entries in a store; has no state of its own."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._index = store.thread(INDEX)

    async def history(self, id_: str, limit: int | None) -> Entries:
        """The entries up to an id, or only the last of them; `LookupError` if gone."""
        if limit is not None:
            for place in await self._places(id_):
                ending = await self._ending(place, id_, limit)
                if ending is not None:
                    return ending
        found = await self.find(id_)
        return found.entries if limit is None else found.entries[-limit:]

    async def find(self, id_: str) -> Found:
        """An entry with all before it; `LookupError` if no checkpoint has it."""
        places = await self._places(id_)
        for place in [*places, *await self._relatives(places)]:
            entries = await self._entries(place)
            kept = _up_to(entries, id_)
            if kept is not None:
                return Found(place, kept, is_end=len(kept) == len(entries))
        raise LookupError(
            f"the store has no entry {id_!r}; its conversation was deleted or rewound"
        )

    async def forget(self, ids: Iterable[str]) -> None:
        """Remove places of entries from the index, if the checkpoints are gone."""
        keys = [key for id_ in ids for key in await self._index.recorded_all(_key(id_))]
        gone: dict[str, bool] = {}
        for checkpoint in {key.rpartition("/")[2] for key in keys}:
            gone[checkpoint] = await self._is_gone(checkpoint)
        await self._index.forget(*(k for k in keys if gone[k.rpartition("/")[2]]))

    async def _is_gone(self, checkpoint: str) -> bool:
        try:
            await self._store.get(checkpoint)
        except NotFound:
            return True
        return False

    async def _places(self, id_: str) -> list[Place]:
        """The checkpoints that the index names, the newest first."""
        rows = await self._index.recorded_all(_key(id_))
        found = [Place(rows[key], key.rpartition("/")[2]) for key in rows]
        return found[::-1]

    async def _relatives(self, places: Sequence[Place]) -> list[Place]:
        """The heads of the same family, for checkpoints that retention removed."""
        found: list[Place] = []
        for name in {place.thread for place in places}:
            try:
                members = await self._store.thread(name).family()
            except NotFound:
                continue
            found += [Place(m.id, m.head.id) for m in members if m.head is not None]
        return found

    async def _ending(self, place: Place, id_: str, limit: int) -> Entries | None:
        """The last entries up to an id, if it is near the end of a checkpoint."""
        thread, count = self._store.thread(place.thread), limit + SOME
        try:
            entries = await thread.tail(MESSAGES, count, ref=place.checkpoint)
        except NotFound:
            return None
        kept = _up_to(entries, id_)
        is_whole = kept is not None and (len(entries) < count or len(kept) >= limit)
        return kept[-limit:] if kept is not None and is_whole else None

    async def _entries(self, place: Place) -> Entries:
        """The entries of a checkpoint; none if it was removed."""
        thread = self._store.thread(place.thread)
        try:
            page = await thread.elements(MESSAGES, limit=None, ref=place.checkpoint)
            return list(page)
        except NotFound:
            pass
        # A deleted thread keeps the checkpoints that its forks still have.
        try:
            state = await self._store.load(await self._store.get(place.checkpoint))
        except NotFound:
            return []
        return list(state.get(MESSAGES, ()))
