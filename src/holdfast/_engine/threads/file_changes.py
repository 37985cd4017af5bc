"""Differences of the files of two checkpoints, and blame for one file."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Sequence

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.files.read import contents, find_listing
from holdfast._engine.threads.files import FilePath, missing_file
from holdfast._engine.threads.lineage import Reference, resolve
from holdfast._engine.threads.load import current
from holdfast._port import Ancestors
from holdfast._values.arguments import checked_stored_path
from holdfast._values.file_diff import LARGEST_TEXT, FileChange, FileOp, changed_lines
from holdfast._values.file_listing import Listing
from holdfast._values.files import Tree, compare
from holdfast._values.manifest import FileLog, decode_manifest
from holdfast._values.records import Checkpoint

# How many bytes of files, old and new, are read to compare their lines. Of what is
# beyond, the sizes are told.
MOST_COMPARED = 1 << 24
# How many checkpoints of a line are read at a time.
MANY = 100


async def difference(
    context: Context,
    thread: str,
    a: Reference,
    b: Reference,
    *,
    path: FilePath | None = None,
) -> tuple[FileChange, ...]:
    """The files that differ between two checkpoints, by path."""
    old = OpenedCheckpoint.of(await _either(context, thread, a))
    new = OpenedCheckpoint.of(await _either(context, thread, b))
    before = await find_listing(context, old) or Listing()
    after = await find_listing(context, new) or Listing()
    found = compare(_below(before.tree, path), _below(after.tree, path))
    compared = _compared(found.changed, before, after)
    olds = await contents(context, old.head.family, [before.files[p] for p in compared])
    news = await contents(context, new.head.family, [after.files[p] for p in compared])
    pairs = zip(compared, olds, news, strict=True)
    lines = {place: changed_lines(one, other) for place, one, other in pairs}
    kinds: tuple[tuple[FileOp, Sequence[bytes]], ...] = (
        ("added", found.added),
        ("removed", found.removed),
        ("changed", found.changed),
        ("mode changed", found.mode_changed),
    )
    changes = [
        _change(op, place, before, after, lines.get(place, ()))
        for op, places in kinds
        for place in places
    ]
    return tuple(sorted(changes, key=lambda change: change.path))


def _below(tree: Tree, path: FilePath | None) -> Tree:
    """The files at a path and below it."""
    if path is None:
        return tree
    place = checked_stored_path(path).rstrip(b"/")
    entries = {
        each: entry
        for each, entry in tree.entries.items()
        if each == place or each.startswith(place + b"/")
    }
    return Tree(entries, tree.rules, tree.omitted)


def _compared(changed: Iterable[bytes], before: Listing, after: Listing) -> list[bytes]:
    """The files that are read to compare their lines, in order, up to a limit."""
    found: list[bytes] = []
    left = MOST_COMPARED
    for path in changed:
        sizes = before.files[path].size, after.files[path].size
        if max(sizes) <= LARGEST_TEXT and sum(sizes) <= left:
            found.append(path)
            left -= sum(sizes)
    return found


def _change(
    op: FileOp,
    path: bytes,
    before: Listing,
    after: Listing,
    lines: tuple[str, ...] = (),
) -> FileChange:
    one, other = before.files.get(path), after.files.get(path)
    return FileChange(
        op=op,
        path=os.fsdecode(path),
        old_size=one.size if one else None,
        new_size=other.size if other else None,
        lines=lines,
    )


async def _either(context: Context, thread: str, reference: Reference) -> Checkpoint:
    if isinstance(reference, Checkpoint):
        return await current(context, reference)
    return await resolve(context, thread, reference)


async def blame(
    context: Context, thread: str, path: FilePath, reference: Reference
) -> Checkpoint:
    """The checkpoint that last changed a file, on the line to a reference."""
    at = await resolve(context, thread, reference)
    digest = await _digest(context, at, path)
    if digest is None:
        raise missing_file(path, at)
    log: FileLog | None = decode_manifest(at).files
    async for checkpoint in _line(context, at):
        files = decode_manifest(checkpoint).files
        if files != log and await _digest(context, checkpoint, path) != digest:
            return at
        at, log = checkpoint, files
    return at


async def _line(context: Context, start: Checkpoint) -> AsyncIterator[Checkpoint]:
    """The ancestors of a checkpoint, the nearest first."""
    while True:
        page = await context.backend.scan(Ancestors(start=start, skip=1, limit=MANY))
        for checkpoint in page:
            yield checkpoint
        if len(page) < MANY:
            return
        start = page[-1]


async def _digest(
    context: Context, checkpoint: Checkpoint, path: FilePath
) -> tuple[int, bytes] | None:
    """The mode and the digest of a file, ``None`` if there is none."""
    listing = await find_listing(context, OpenedCheckpoint.of(checkpoint))
    found = listing.files.get(checked_stored_path(path)) if listing else None
    return (found.mode, found.digest) if found else None
