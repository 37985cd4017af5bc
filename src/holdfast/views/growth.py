"""The growth of a checkpoint over its parent, from both manifests; reads no state."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from holdfast._values.manifest import FileLog, Manifest, Value, decode_manifest
from holdfast._values.records import Checkpoint, Run
from holdfast._values.rope import Rope
from holdfast._values.runs import count_segments


class Growth(msgspec.Struct, frozen=True):
    """The values that differ from the parent's, and about how many bytes are new."""

    changed: tuple[str, ...]
    stored: int


def growth_of(checkpoint: Checkpoint, parent: Checkpoint | None) -> Growth:
    """The growth of a checkpoint over its parent.

    A value that was appended to counts by its growth. One that was edited counts by the
    share of its new segments, because the manifests do not have their sizes.
    """
    before = manifest_of(parent) if parent else Manifest(is_mapping=True)
    after = manifest_of(checkpoint)
    names = [*after.values, *(n for n in before.values if n not in after.values)]
    changed = [n for n in names if not _same(after.values.get(n), before.values.get(n))]
    added = sum(_added(after.values.get(n), before.values.get(n)) for n in changed)
    added += _added_files(after.files, before.files)
    return Growth(tuple(changed), len(checkpoint.manifest) + added)


def value_sizes(checkpoint: Checkpoint) -> dict[str, int]:
    """The bytes of each value as JSON."""
    return {n: size_of(v) for n, v in manifest_of(checkpoint).values.items()}


@lru_cache(maxsize=16)
def manifest_of(checkpoint: Checkpoint) -> Manifest:
    """The manifest of a checkpoint; along a line each is needed several times."""
    return decode_manifest(checkpoint)


def size_of(value: Value) -> int:
    """The bytes of a value as JSON."""
    return value.size if isinstance(value, Rope) else len(value)


def _same(one: Value | None, other: Value | None) -> bool:
    if isinstance(one, Rope) and isinstance(other, Rope):
        return one.runs == other.runs and one.is_list == other.is_list
    return one == other


def _added(new: Value | None, old: Value | None) -> int:
    if not isinstance(new, Rope):
        return 0  # it stands in the manifest, or was removed
    known = old.runs if isinstance(old, Rope) else ()
    total = count_segments(new.runs)
    added = total - _shared(new.runs, known)
    return new.size * added // max(total, 1)


def _added_files(new: FileLog | None, old: FileLog | None) -> int:
    if new is None or new == old:
        return 0
    total = count_segments(new.runs)
    added = total - _shared(new.runs, old.runs if old else ())
    return new.size * added // max(total, 1)


def _shared(runs: tuple[Run, ...], known: tuple[Run, ...]) -> int:
    """The number of segments in both lists of runs."""
    count = 0
    for first, last in runs:
        for other_first, other_last in known:
            count += max(0, min(last, other_last) - max(first, other_first) + 1)
    return count
