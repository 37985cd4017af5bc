"""The sizes of families: which threads take the most space."""

from __future__ import annotations

import msgspec

from holdfast._engine.context import Context
from holdfast._port import Threads, Weight, Weights
from holdfast._values.manifest import WHOLE, Manifest, decode_manifest
from holdfast._values.records import PIN, ThreadRecord, checked_limit
from holdfast._values.rope import Rope


class Heavy(msgspec.Struct, frozen=True):
    """The threads of a family, and the space they take together.

    ``logical_bytes`` is what whole-state saving would have written, ``stored_bytes``
    what is stored; ``values`` are the bytes of the values of all heads, by name. What
    the checkpoints of agents keep of a thread is named only where the thread is gone.
    """

    threads: tuple[str, ...]
    checkpoints: int
    logical_bytes: int
    stored_bytes: int
    values: dict[str, int]


async def heaviest(context: Context, limit: int | None) -> tuple[Heavy, ...]:
    """The threads that take the most space, together with their forks."""
    checked_limit(limit)
    weights = await context.backend.scan(Weights(limit=limit))
    return tuple([await _heavy(context, weight) for weight in weights])


async def _heavy(context: Context, weight: Weight) -> Heavy:
    query = Threads(family=weight.family, every=True)
    living = [t for t in await context.backend.scan(query) if t.deleted_at is None]
    threads = [t for t in living if t.kind != PIN] or living
    return Heavy(
        threads=tuple(t.id for t in sorted(threads, key=lambda t: t.number)),
        checkpoints=weight.checkpoints,
        logical_bytes=weight.logical_bytes,
        stored_bytes=weight.stored_bytes,
        values=_values(threads),
    )


def _values(threads: list[ThreadRecord]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for thread in threads:
        if thread.head is not None:
            _count(decode_manifest(thread.head), sizes)
    return dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0])))


def _count(manifest: Manifest, sizes: dict[str, int]) -> None:
    for name, value in manifest.values.items():
        size = value.size if isinstance(value, Rope) else len(value)
        shown = name if name != WHOLE else "(root)"
        sizes[shown] = sizes.get(shown, 0) + size
