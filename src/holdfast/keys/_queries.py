"""Queries as an encrypted store can answer them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from holdfast._port import (
    Ancestors,
    CheckpointEntries,
    Entries,
    FamilyEntries,
    LineLength,
    Marked,
    Matches,
    Moves,
    OwnEntries,
    Query,
    SavedIn,
    Saves,
    Threads,
)
from holdfast._values.records import Entry
from holdfast.keys._records import Records

R = TypeVar("R")


def hidden_query(query: Query[R], hide: Records) -> Query[R]:
    """The same query for encrypted names; it may give more than `wanted_entry`."""
    convert = _HIDE.get(type(query))
    # Both ask for the same records, which a type checker cannot follow.
    return cast("Query[R]", convert(query, hide)) if convert else query


def wanted_entry(query: Query[Any]) -> Callable[[object], bool] | None:
    """A function that tells if an entry's key has the prefix of the query."""
    prefix = ""
    if isinstance(query, Entries | FamilyEntries | OwnEntries):
        prefix = query.prefix or ""
    if not prefix:
        return lambda _: True
    return lambda entry: isinstance(entry, Entry) and entry.key.startswith(prefix)


def _threads(query: Threads, hide: Records) -> Threads:
    return replace(
        query,
        kind=query.kind and hide.hide_kind(query.kind),
        without=query.without and hide.hide_kind(query.without),
        owner=hide.hide_any(query.owner, "owner"),
        agent=hide.hide_any(query.agent, "agent"),
        # Of the beginning of a name, the backend knows the scopes.
        prefix=hide.ring.names.scopes(query.prefix or "") or None,
        metadata=(),
    )


def _ancestors(query: Ancestors, hide: Records) -> Ancestors:
    if not isinstance(query.start, str):
        return query
    return replace(query, start=hide.hide(query.start, "thread"))


def _marked(query: Marked, hide: Records) -> Marked:
    label, tag = query.label, query.tag
    return replace(
        query, label=hide.hide_any(label, "label"), tag=hide.hide_any(tag, "tag")
    )


def _matches(query: Matches, hide: Records) -> Matches:
    return replace(query, within=hide.ring.names.scopes(query.within))


def _of_thread(query: Any, hide: Records) -> Any:
    return replace(query, thread=hide.hide_any(query.thread, "thread"))


def _entries(query: Entries, hide: Records) -> Entries:
    return replace(
        query,
        thread=hide.hide(query.thread, "thread"),
        key=hide.hide_any(query.key, "key"),
        prefix=_prefix(query.prefix or "", hide) or None,
    )


def _prefix(prefix: str, hide: Records) -> str:
    return hide.ring.names.prefix(prefix)


def _family_entries(query: FamilyEntries, hide: Records) -> FamilyEntries:
    return replace(query, prefix=_prefix(query.prefix, hide))


def _own_entries(query: OwnEntries, hide: Records) -> OwnEntries:
    names = tuple([hide.hide(name, "thread") for name in query.threads])
    return replace(query, threads=names, prefix=_prefix(query.prefix, hide))


def _checkpoint_entries(query: CheckpointEntries, hide: Records) -> CheckpointEntries:
    name = hide.hide(query.thread.id, "thread")
    return replace(query, thread=replace(query.thread, id=name))


_HIDE: dict[type, Callable[[Any, Records], Any]] = {
    Ancestors: _ancestors,
    CheckpointEntries: _checkpoint_entries,
    Entries: _entries,
    FamilyEntries: _family_entries,
    LineLength: _of_thread,
    Marked: _marked,
    Matches: _matches,
    Moves: _of_thread,
    OwnEntries: _own_entries,
    SavedIn: lambda query, hide: replace(query, kind=hide.hide_kind(query.kind)),
    Saves: _of_thread,
    Threads: _threads,
}
