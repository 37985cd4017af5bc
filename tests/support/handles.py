"""The classes of what a store gives, in both APIs; most of them have no public name."""

from __future__ import annotations

from typing import Any

import holdfast
from holdfast.operations.stores import awaited


def classes(store: Any) -> list[type]:
    """Those of a store and its handles, each with the classes that it is made of."""
    handles = [
        store,
        store.thread("t"),
        store.stream("s"),
        store.agents,
        store.agents.autosave("a"),
        store.conversations,
        store.documents,
    ]
    made_of = [kind for handle in handles for kind in type(handle).__mro__]
    return [kind for kind in made_of if kind.__module__.startswith("holdfast.")]


with holdfast.open(":memory:") as store:
    BLOCKING, AWAITED = classes(store), classes(awaited(store))
    Agents, Conversations, Documents = (
        type(handle) for handle in (store.agents, store.conversations, store.documents)
    )
    with store.transaction() as change:
        CHANGES = [type(change), type(change.thread("t")), type(change.stream("s"))]
