"""Entries of a transcript: their ids, and the ones that a transcript does not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from operator import eq
from typing import cast
from urllib.parse import quote

from claude_agent_sdk import SessionStoreEntry

from holdfast.errors import Unstorable

Entries = list[SessionStoreEntry]


def checked(entries: object) -> Entries:
    """The entries of a call of the SDK, each id once."""
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) for entry in cast("list[object]", entries)
    ):
        raise Unstorable("entries", "must be a list of objects, one for each line")
    return _unknown(cast("Entries", entries), set())


def key_of(entry: SessionStoreEntry) -> str | None:
    """The key of an entry in the journal, ``None`` if it has no id."""
    id_: object = entry.get("uuid")
    if not isinstance(id_, str) or not id_:
        return None  # titles, tags and modes: the last one counts, so all are kept
    return "entry:" + quote(id_, errors="surrogatepass")


def keys_of(entries: Iterable[SessionStoreEntry]) -> Iterator[str]:
    """The keys of the entries that have an id."""
    return filter(None, map(key_of, entries))


def missing(stored: Sequence[SessionStoreEntry], entries: Entries) -> Entries:
    """The entries that are not stored yet.

    An entry without an id is known only by its neighbours: if the first entries are a
    part of the stored list, an earlier attempt stored that part.
    """
    return _unknown(entries[_repeated(stored, entries) :], set(keys_of(stored)))


def _repeated(stored: Sequence[SessionStoreEntry], entries: Entries) -> int:
    """The number of entries at the start that are stored in the same sequence."""
    places = {key_of(entry): place for place, entry in enumerate(stored)}
    for offset, key in enumerate(map(key_of, entries)):
        if key is not None and key in places:
            start = max(places[key] - offset, 0)
            return len(list(takewhile(bool, map(eq, stored[start:], entries))))
    return 0


def _unknown(entries: Entries, known: set[str]) -> Entries:
    found: Entries = []
    for entry in entries:
        key = key_of(entry)
        if key is None or key not in known:
            found.append(entry)
        if key is not None:
            known.add(key)
    return found
