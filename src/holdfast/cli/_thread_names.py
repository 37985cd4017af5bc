"""Threads by the names people know: a conversation, agent or document by its id.

The full name of a thread always means that thread.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast._api.store import Store
from holdfast._api.thread import Thread
from holdfast._engine.context import Context
from holdfast._engine.records import agents, conversations, documents, streams
from holdfast._engine.threads.lineage import find_record
from holdfast._values import nearest
from holdfast._values.records import ThreadRecord
from holdfast.errors import NotFound


def prefixes() -> tuple[str, ...]:
    """The beginnings of the names of conversations, agents, documents and streams."""
    kinds = (conversations, agents, documents, streams)
    return tuple(kind.PREFIX for kind in kinds)


def find_thread(
    store: Store, name: str, *, unsaved: bool = False
) -> tuple[Thread, ThreadRecord] | None:
    """The thread of a name or an id; ``unsaved`` finds also one without checkpoints."""
    thread = store.thread(name)  # refuses what cannot be a name
    record = _record(store, name, unsaved=unsaved)
    if record is not None:
        return thread, record
    known = (_record(store, prefix + name, unsaved=unsaved) for prefix in prefixes())
    found = [record for record in known if record is not None]
    if len(found) > 1:
        names = [record.id for record in found]
        text = f"{name} is more than one thing; name one of {', '.join(names)}"
        raise NotFound(text, thread=name, matches=names)
    return (store.thread(found[0].id), found[0]) if found else None


def full_name(store: Store, name: str) -> str:
    """The full name of a thread; a name that is not found stays as it is."""
    found = find_thread(store, name, unsaved=True)
    return found[1].id if found else name


def unknown(store: Store, name: str) -> NotFound:
    """The error for a name that means nothing in this store."""
    names = [record.id for record in store.threads()]
    ids = [_id(full) for full in names]
    hint = did_you_mean(name, [*names, *ids], "holdfast threads lists them all")
    return NotFound(f"there is no thread or checkpoint {name}; {hint}", thread=name)


def did_you_mean(name: str, names: Iterable[str], otherwise: str) -> str:
    """The hint for a name that was not found."""
    near = nearest.nearest(name, names, most=1)
    return f"did you mean {near[0]}?" if near else otherwise


def _record(store: Store, name: str, *, unsaved: bool) -> ThreadRecord | None:
    if unsaved:
        return store.runner.run(Context.find_thread, name)
    return store.runner.run(find_record, name)


def _id(name: str) -> str:
    prefix = next((p for p in prefixes() if name.startswith(p)), "")
    return name.removeprefix(prefix)
