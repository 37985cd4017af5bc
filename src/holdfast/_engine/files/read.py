"""Reading the list of a checkpoint's files, and their contents."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from hashlib import sha256

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._values.file_listing import (
    Below,
    Listing,
    Part,
    decode_level,
    fold_near,
)
from holdfast._values.manifest import FileLog
from holdfast._values.records import Run, Segment
from holdfast._values.stored_file import StoredFile, runs_of
from holdfast.errors import Corrupt, NotFound

# Reads the segments of some runs of a family, in order.
Fetch = Callable[[Sequence[Run]], Awaitable[Sequence[Segment]]]


async def get_listing(context: Context, known: OpenedCheckpoint) -> Listing:
    """The list of a checkpoint's files; `NotFound` if none were saved with it."""
    found = await find_listing(context, known)
    if found is None:
        raise NotFound(
            f"checkpoint {known.head.id!r} has no files; save with files=",
            code="no_files",
            thread=known.head.thread,
            reference=known.head.id,
        )
    return found


async def find_listing(context: Context, known: OpenedCheckpoint) -> Listing | None:
    """The list of a checkpoint's files, ``None`` if none were saved with it."""
    if known.listing is None and known.manifest.files is not None:
        log = known.manifest.files
        fetch = partial(context.backend.segments, known.head.family)
        # Neighbours share most levels; those of the head are often in memory.
        near = context.cache.listing(known.head.thread)
        known.listing = await read_listing(fetch, log, near)
    return known.listing


async def read_listing(
    fetch: Fetch, log: FileLog, near: Listing | None = None
) -> Listing:
    """The list of files, in two requests for segments; none for levels of ``near``."""
    near = near or Listing()
    known = {(part.at.number, part.at.digest): part for part in near.parts}
    top = known.get((log.top, log.digest)) or await _top(fetch, log)
    missing = [at for at in top.level.below if (at.number, at.digest) not in known]
    runs = [Run(at.number, at.number) for at in missing]
    found = await fetch(runs) if runs else ()
    for at, segment in zip(missing, found, strict=True):
        known[at.number, at.digest] = _part(at, segment)
    below = (known[at.number, at.digest] for at in top.level.below)
    return fold_near((*below, top), near)


async def _top(fetch: Fetch, log: FileLog) -> Part:
    [segment] = await fetch([Run(log.top, log.top)])
    return _part(Below(log.top, len(segment.data), log.digest), segment)


def _part(at: Below, segment: Segment) -> Part:
    if sha256(segment.data).digest() != at.digest:
        raise Corrupt("a list of files", "it is not what was saved")
    return Part(at, decode_level(segment.data))


async def contents(
    context: Context, family: int, wanted: Iterable[StoredFile]
) -> list[bytes]:
    """The contents of some files, in one request."""
    files = list(wanted)
    chunks = await read_chunks(partial(context.backend.segments, family), files)
    return [content_of(stored, chunks) for stored in files]


async def read_chunks(fetch: Fetch, files: Iterable[StoredFile]) -> dict[int, bytes]:
    """The segments that hold some files, by number."""
    numbers = sorted({number for stored in files for number in stored.numbers})
    runs = [Run(first, first + count - 1) for first, count in runs_of(numbers)]
    found = await fetch(runs) if runs else ()
    return {n: each.data for n, each in zip(numbers, found, strict=True)}


def content_of(stored: StoredFile, chunks: dict[int, bytes]) -> bytes:
    """The content of a file, put together and checked."""
    content = b"".join(chunks[number] for number in stored.numbers)
    if not stored.entry.is_directory and sha256(content).digest() != stored.digest:
        name = os.fsdecode(stored.path)
        raise Corrupt(f"the file {name!r}", "its content is not what was saved")
    return content
