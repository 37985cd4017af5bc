"""Differences of states as documents and as lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast._api.store import Store
from holdfast._values.paths import Part, parse_path
from holdfast._values.records import Checkpoint
from holdfast.cli.terminal.output import Line, plain
from holdfast.diff import Change, Diff, Op

SIGNS: dict[Op, str] = {"added": "+", "removed": "-", "changed": "~"}


def state_before(store: Store, checkpoint: Checkpoint, state: object) -> object:
    """What a checkpoint was saved on top of; before the first there was nothing."""
    if checkpoint.parent is not None:
        return store.load(store.get(checkpoint.parent))
    return {} if _is_mapping(state) else None


def only_at(found: Diff, path: str | None) -> Diff:
    """The changes of what stands at a path, in it, or around it."""
    if path is None:
        return found
    parts = _texts(parse_path(path))
    return Diff(
        tuple(c for c in found.changes if _touches(_texts(c.path), parts)),
        tuple(o for o in found.operations if _touches(_pointed(o[1]), parts)),
    )


def change_document(change: Change) -> dict[str, Any]:
    """One change; a key that is not text is written as the store writes it."""
    return {
        "op": change.op,
        "path": plain(list(change.path)),
        "old": plain(change.old),
        "new": plain(change.new),
    }


def change_lines(found: Diff, indent: str = "") -> Iterator[Line]:
    """A line for each change, and one that counts them."""
    if not found.changes:
        yield ((f"{indent}no difference", "faint"),)
        return
    for change in found.changes:
        yield ((f"{indent}{change}", change.op),)
    yield ((f"{indent}{counts(found)}", "faint"),)


def counts(found: Diff) -> str:
    """How many were added, removed and changed."""
    seen = Counter(change.op for change in found.changes)
    return ", ".join(f"{seen[op]} {op}" for op in SIGNS)


def tallies(found: Diff) -> dict[str, Counter[Op]]:
    """The same for each value of the state."""
    tallied: dict[str, Counter[Op]] = {}
    for change in found.changes:
        name = str(change.path[0]) if change.path else "(root)"
        tallied.setdefault(name, Counter())[change.op] += 1
    return tallied


def _is_mapping(state: object) -> bool:
    return type(state) is dict


def _texts(parts: Iterable[Part | Any]) -> tuple[str, ...]:
    return tuple(map(str, parts))


def _pointed(pointer: str) -> tuple[str, ...]:
    return _texts(parse_path(pointer))


def _touches(path: tuple[str, ...], other: tuple[str, ...]) -> bool:
    shared = min(len(path), len(other))
    return path[:shared] == other[:shared]
