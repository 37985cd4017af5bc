"""Differences of states: which to show, their counts, and each as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast._api.store import Store
from holdfast._values.paths import Part, parse_path
from holdfast._values.records import Checkpoint
from holdfast.diff import Change, Diff, Op, diff
from holdfast.views.documents import plain
from holdfast.views.langgraph_steps import without_bookkeeping

OPS: tuple[Op, ...] = ("added", "removed", "changed")


def state_before(store: Store, checkpoint: Checkpoint, state: object) -> object:
    """The state of a checkpoint's parent, or an empty one for the first checkpoint."""
    if checkpoint.parent is not None:
        return store.load(store.get(checkpoint.parent))
    return {} if type(state) is dict else None


def differences_of(
    store: Store, checkpoints: Iterable[Checkpoint], *, bookkeeping: bool
) -> Iterator[Diff]:
    """The changes of each checkpoint; the loaded state of a parent is used again.

    ``bookkeeping`` includes what a framework keeps for itself.
    """
    known: dict[str | None, object] = {}
    for checkpoint in checkpoints:
        if checkpoint.id not in known:
            known[checkpoint.id] = store.load(checkpoint)
        state = known[checkpoint.id]
        before = state_before(store, checkpoint, state)
        known = {checkpoint.parent: before}
        yield difference(before, state, bookkeeping=bookkeeping)


def difference(old: object, new: object, *, bookkeeping: bool) -> Diff:
    """The changes; ``bookkeeping`` includes what a framework keeps for itself."""
    found = diff(old, new)
    return found if bookkeeping else without_bookkeeping(found, old, new)


def only_at(found: Diff, path: str | None) -> Diff:
    """The changes at a path, inside it, or of a value that contains it."""
    if path is None:
        return found
    parts = _texts(parse_path(path))
    return Diff(
        tuple(c for c in found.changes if _touches(_texts(c.path), parts)),
        tuple(o for o in found.operations if _touches(_texts(parse_path(o[1])), parts)),
    )


def change_documents(found: Diff) -> list[dict[str, Any]]:
    """A document for each change."""
    return [_change_document(change) for change in found.changes]


def _change_document(change: Change) -> dict[str, Any]:
    return {
        "op": change.op,
        "path": plain(list(change.path)),
        "old": plain(change.old),
        "new": plain(change.new),
    }


def counts(changes: Iterable[Change], *, every: bool = True) -> str:
    """The numbers of added, removed and changed values; ``every`` includes zeros."""
    seen = Counter(change.op for change in changes)
    return ", ".join(f"{seen[op]} {op}" for op in OPS if every or seen[op])


def counts_by_value(found: Diff) -> dict[str, Counter[Op]]:
    """The counts for each top-level value of the state."""
    return {
        name: Counter(change.op for change in changes)
        for name, changes in changes_by_value(found).items()
    }


def changes_by_value(found: Diff) -> dict[str, list[Change]]:
    """The changes of each top-level value of the state."""
    values: dict[str, list[Change]] = {}
    for change in found.changes:
        name = str(change.path[0]) if change.path else "(root)"
        values.setdefault(name, []).append(change)
    return values


def _texts(parts: Iterable[Part | Any]) -> tuple[str, ...]:
    return tuple(map(str, parts))


def _touches(path: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shared = min(len(path), len(other))
    return path[:shared] == other[:shared]
