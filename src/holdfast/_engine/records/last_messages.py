"""The last message of each of many checkpoints, for listings of a history."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import cast

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.records import transcript_tail
from holdfast._port import CheckpointKey
from holdfast._values import codec
from holdfast._values.arguments import checked_instance, checked_items
from holdfast._values.list_tail import elements_of
from holdfast._values.manifest import Value, decode_manifest
from holdfast._values.records import Checkpoint, Run
from holdfast._values.rope import Rope
from holdfast._values.runs import last_runs
from holdfast.errors import Corrupt


async def last_messages(
    context: Context, checkpoints: Sequence[Checkpoint]
) -> list[object]:
    """The last message of each; ``None`` if it has none, or was removed meanwhile."""
    given = checked_items(checkpoints, "checkpoints")
    checkpoints = [checked_instance(c, Checkpoint, "checkpoints") for c in given]
    families: dict[int, list[Checkpoint]] = defaultdict(list)
    for checkpoint in checkpoints:
        families[checkpoint.family].append(checkpoint)
    found: dict[int, object] = {}
    for family, theirs in families.items():
        found |= await _of_those_left(context, family, theirs)
    return [found.get(checkpoint.seq) for checkpoint in checkpoints]


async def _of_those_left(
    context: Context, family: int, checkpoints: Sequence[Checkpoint]
) -> dict[int, object]:
    try:
        return await _of_family(context, family, checkpoints)
    except Corrupt:
        # Some may have been removed since they were listed.
        keys = [CheckpointKey(family, checkpoint.id) for checkpoint in checkpoints]
        stored = {c.seq for c in await context.backend.read(keys) if c is not None}
        left = [c for c in checkpoints if c.seq in stored]
        if len(left) == len(checkpoints):
            raise
        return await _of_those_left(context, family, left)


async def _of_family(
    context: Context, family: int, checkpoints: Sequence[Checkpoint]
) -> dict[int, object]:
    """The last messages by sequence number; shared segments are read once."""
    manifests = [decode_manifest(checkpoint) for checkpoint in checkpoints]
    values = [manifest.values.get("messages", b"null") for manifest in manifests]
    parts = await _last_parts(context, family, values)
    found: dict[int, object] = {}
    for checkpoint, manifest, value in zip(checkpoints, manifests, values, strict=True):
        elements = _last_elements(value, parts)
        if elements is None:
            known = OpenedCheckpoint(checkpoint, manifest)
            elements = await transcript_tail.newest_of(context, known, 1)
        found[checkpoint.seq] = elements[-1] if elements else None
    return found


def _last_elements(value: Value, parts: dict[Run, bytes]) -> list[object] | None:
    """The last elements of a list; ``None`` if more segments have to be read."""
    if isinstance(value, Rope):
        return elements_of(parts[_last_run(value)]) if value.is_list else []
    decoded = codec.decode(value)
    return cast("list[object]", decoded) if type(decoded) is list else []


async def _last_parts(
    context: Context, family: int, values: Sequence[Value]
) -> dict[Run, bytes]:
    """The last segments of the lists among some values."""
    lists = (v for v in values if isinstance(v, Rope) and v.is_list)
    runs = sorted(set(map(_last_run, lists)))
    segments = await context.backend.segments(family, runs) if runs else []
    return {run: segment.data for run, segment in zip(runs, segments, strict=True)}


def _last_run(rope: Rope) -> Run:
    return last_runs(rope.runs, 0, 1)[0]
