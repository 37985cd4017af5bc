"""Finding things: the messages with some words, and who set a value."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.search import query as search
from holdfast._engine.search.query import SearchQuery
from holdfast._engine.search.text import folded, shown_needle, snippet, words_of
from holdfast._engine.threads.blame import blame
from holdfast._engine.threads.lineage import find_head
from holdfast._engine.threads.listing import get
from holdfast._messages.transcript import role_of, text_of
from holdfast.errors import Unstorable
from holdfast.views.commands import command
from holdfast.views.documents import iso
from holdfast.views.showing import PageSize, Showing
from holdfast.views.state_values import StateReader


class FindQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Words that a message must contain, in one thread or in all."""

    q: str
    thread: str | None = None
    limit: PageSize = 20
    cursor: int | None = None


class BlameQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One value of one checkpoint, by its path."""

    checkpoint: str
    path: str


async def search_document(
    context: Context, query: FindQuery, showing: Showing
) -> dict[str, Any]:
    """A page of messages, those of the thread used last first."""
    if not query.q.strip():
        raise Unstorable("q", "must not be empty; type a word")
    find = _in_all if query.thread is None else _in_thread
    hits, cursor = await find(context, query, showing)
    following = None if cursor is None else str(cursor)
    return {"hits": hits, "next": following, "command": command("search", query.q)}


Hits: TypeAlias = tuple[list[dict[str, Any]], int | None]


async def _in_all(context: Context, query: FindQuery, showing: Showing) -> Hits:
    wanted = SearchQuery(text=query.q, kind=None, limit=query.limit, after=query.cursor)
    page = await search.search(context, wanted, None)
    heads = [await find_head(context, match.thread) for match in page]
    hits = [
        {
            "thread": match.thread,
            "title": showing.name(match.title),
            "checkpoint": head.id if head else None,
            "position": match.position,
            "role": match.role,
            **_excerpt(match.message, query.q, showing),
            "at": iso(match.updated_at),
        }
        for match, head in zip(page, heads, strict=True)
    ]
    return hits, page.cursor


async def _in_thread(context: Context, query: FindQuery, showing: Showing) -> Hits:
    """The messages of one head, its last ones first; the cursor is a position."""
    head = await context.get_head(query.thread or "")
    messages = (await StateReader(context, head).transcript()).messages
    needles = [folded(word) for word in words_of(query.q)]
    hits: list[dict[str, Any]] = []
    for position in range(min(query.cursor or len(messages), len(messages)))[::-1]:
        message = messages[position]
        whole = folded(text_of(message))
        if not all(needle in whole for needle in needles):
            continue
        if len(hits) == query.limit:
            return hits, position + 1
        hits.append(
            {
                "thread": query.thread,
                "title": None,
                "checkpoint": head.id,
                "position": position,
                "role": role_of(message),
                **_excerpt(message, query.q, showing),
                "at": iso(head.saved_at),
            }
        )
    return hits, None


def _excerpt(message: object, words: str, showing: Showing) -> dict[str, Any]:
    """The text around the words; what is redacted is not found in it."""
    text = showing.whole(text_of(message))
    whole, needles = folded(text), [folded(word) for word in words_of(words)]
    found = [needle for needle in needles if needle in whole]
    shown = snippet(text, shown_needle(whole, words, found)) if found else text
    line = Showing().line(shown)
    return {"text": line, "marks": marks(line, words)}


def marks(text: str, words: str) -> list[list[int]]:
    """The start and end of each word's first place in a text, sorted."""
    whole = folded(text)
    if len(whole) != len(text):
        return []  # folding has moved the places
    found = [(whole.find(folded(w)), len(folded(w))) for w in words_of(words)]
    return sorted([start, start + size] for start, size in found if start >= 0)


async def blame_document(
    context: Context, query: BlameQuery, showing: Showing
) -> dict[str, Any]:
    """The checkpoint that last set a value."""
    start = await get(context, query.checkpoint)
    found = await blame(context, start.thread, query.path, start)
    setter = found.checkpoint
    return {
        "path": query.path,
        "checkpoint": setter.id,
        "step": setter.step,
        "at": iso(setter.saved_at),
        "thread": setter.thread,
        "kind": setter.kind,
        "value": showing.value(found.value),
        "previous": found.previous.id if found.previous else None,
        "command": command("blame", query.path, start.id),
    }
