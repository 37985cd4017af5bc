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
    find_in,
    fold,
    fold_near,
    tree_near,
)
from holdfast._values.files import Tree
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
    log = known.manifest.files
    if known.listing is None and log is not None:
        near = _near(context, known)
        fetch = partial(context.backend.segments, known.head.family)
        known.listing = fold_near(await _parts(fetch, log, near), near)
    return known.listing


async def get_tree(context: Context, known: OpenedCheckpoint) -> Tree:
    """The files of a checkpoint; `NotFound` if none were saved with it."""
    if (parts := await _parts_near(context, known)) is None:
        return (await get_listing(context, known)).tree
    return tree_near(parts, _near(context, known))


async def get_files(
    context: Context, known: OpenedCheckpoint, paths: Iterable[bytes]
) -> list[StoredFile | None]:
    """Some files of a checkpoint; `NotFound` if none were saved with it."""
    if (parts := await _parts_near(context, known)) is None:
        files = (await get_listing(context, known)).files
        return [files.get(path) for path in paths]
    return [find_in(parts, path) for path in paths]


async def _parts_near(
    context: Context, known: OpenedCheckpoint
) -> tuple[Part, ...] | None:
    """The levels of a list near one in memory. It would not be kept itself: it is not
    put together.
    """
    log, near = known.manifest.files, _near(context, known)
    if known.listing is not None or log is None or not near.parts:
        return None
    fetch = partial(context.backend.segments, known.head.family)
    return await _parts(fetch, log, near)


def _near(context: Context, known: OpenedCheckpoint) -> Listing:
    """A list that shares most levels: that of the head is often in memory."""
    return context.cache.listing(known.head.thread) or Listing()


async def read_listing(fetch: Fetch, log: FileLog) -> Listing:
    """The list of files, all of it read."""
    return fold(await _parts(fetch, log, Listing()))


async def _parts(fetch: Fetch, log: FileLog, near: Listing) -> tuple[Part, ...]:
    """The levels of a list, in two requests for segments; none for those of another."""
    known = {(part.at.number, part.at.digest): part for part in near.parts}
    top = known.get((log.top, log.digest)) or await _top(fetch, log)
    missing = [at for at in top.level.below if (at.number, at.digest) not in known]
    runs = [Run(at.number, at.number) for at in missing]
    found = await fetch(runs) if runs else ()
    for at, segment in zip(missing, found, strict=True):
        known[at.number, at.digest] = _part(at, segment)
    return (*(known[at.number, at.digest] for at in top.level.below), top)


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
    found = [chunks[number] for number in stored.numbers]
    # Before they are joined: a forged list can name anything.
    is_whole = sum(map(len, found)) == stored.size
    content = b"".join(found) if is_whole else b""
    if stored.entry.is_directory:
        return content
    if not is_whole or sha256(content).digest() != stored.digest:
        name = os.fsdecode(stored.path)
        raise Corrupt(f"the file {name!r}", "its content is not what was saved")
    return content
