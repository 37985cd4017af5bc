"""The values of many threads in one request, for servers that are far away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.threads.journal import OF_THREAD
from holdfast._port import Backend, Entries, OwnEntries, Query, SegmentsKey
from holdfast._port.layer import Layer
from holdfast._values.codec import encode
from holdfast._values.manifest import decode_manifest
from holdfast._values.records import (
    Checkpoint,
    Entry,
    Page,
    Run,
    Segment,
    ThreadRecord,
)
from holdfast._values.rope import Rope

R = TypeVar("R")

# What is read in advance of one page, in bytes.
LARGEST = 16 << 20


class _Prefetched(Layer):
    """A backend of which some segments have been read already."""

    def __init__(
        self, backend: Backend, pieces: dict[tuple[int, tuple[Run, ...]], list[Segment]]
    ) -> None:
        super().__init__(backend)
        self._pieces = pieces

    async def segments(self, family: int, runs: Sequence[Run]) -> list[Segment]:
        found = self._pieces.get((family, tuple(runs)))
        return await super().segments(family, runs) if found is None else found


class _WithEntries(Layer):
    """A backend of which some threads' own entries have been read already."""

    def __init__(self, backend: Backend, found: dict[Entries, list[Entry]]) -> None:
        super().__init__(backend)
        self._found = found

    async def scan(self, query: Query[R]) -> Page[R]:
        asked: Query[Any] = query
        found = self._found.get(asked) if isinstance(asked, Entries) else None
        if found is None:
            return await super().scan(query)
        # They are the records that this query asks for.
        return cast("Page[R]", Page(tuple(found)))


async def with_entries(
    context: Context, threads: Iterable[ThreadRecord], *prefixes: str
) -> Context:
    """A context that has at hand what some threads recorded on themselves."""
    names = tuple(thread.id for thread in threads)
    if len(names) <= 1:
        return context
    found: dict[Entries, list[Entry]] = {}
    for prefix in prefixes:
        for name in names:
            found[_entries_of(name, prefix)] = []
        for entry in await context.backend.scan(
            OwnEntries(threads=names, prefix=prefix)
        ):
            found[_entries_of(entry.thread, prefix)].append(entry)
    return replace(context, backend=_WithEntries(context.backend, found))


def _entries_of(thread: str, prefix: str) -> Entries:
    return Entries(thread=thread, checkpoint=OF_THREAD, prefix=prefix)


async def prefetched(
    context: Context, threads: Iterable[ThreadRecord], names: Sequence[str] | None
) -> Context:
    """A context that has at hand what is not in the manifests of some heads.

    ``names`` are the values that will be read, ``None`` for all of them.
    """
    keys = list(_keys(threads, names))
    if len(keys) <= 1:
        return context
    found = await context.backend.read(keys)
    pieces = {
        (key.family, key.runs): list(piece.segments)
        for key, piece in zip(keys, found, strict=True)
        if piece is not None  # the operation that reads it tells why
    }
    return replace(context, backend=_Prefetched(context.backend, pieces))


def _keys(
    threads: Iterable[ThreadRecord], names: Sequence[str] | None
) -> Iterator[SegmentsKey]:
    left = LARGEST
    for thread in threads:
        head = thread.head
        if head is None or not _may_have_ropes(head, names):
            continue
        for name, value in decode_manifest(head).values.items():
            if isinstance(value, Rope) and (names is None or name in names):
                left -= value.size
                if left < 0:
                    return
                yield SegmentsKey(head.family, value.runs)


def _may_have_ropes(head: Checkpoint, names: Sequence[str] | None) -> bool:
    """True if decoding the manifest is worth it, which takes much longer than this."""
    if names is None:
        return bool(head.runs)
    return any(
        encode(name) + b':["text"' in head.manifest
        or encode(name) + b':["list"' in head.manifest
        for name in names
    )
