"""The files at a checkpoint of a thread."""

from __future__ import annotations

import os
from collections.abc import Sequence

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.files.read import contents, get_files, get_tree
from holdfast._engine.threads.lineage import Reference
from holdfast._engine.threads.parts import read_at
from holdfast._values.arguments import checked_items, checked_stored_path
from holdfast._values.files import Tree
from holdfast._values.records import Checkpoint
from holdfast._values.stored_file import StoredFile
from holdfast.errors import NotFound

# A path as callers write it: with "/" between its parts, relative to the workspace.
FilePath = str | bytes | os.PathLike[str]


async def files(context: Context, thread: str, reference: Reference) -> Tree:
    """The files at a checkpoint; `NotFound` if none were saved with it."""

    async def read(known: OpenedCheckpoint) -> Tree:
        return await get_tree(context, known)

    return await read_at(context, thread, reference, read)


async def read_files(
    context: Context, thread: str, paths: Sequence[FilePath], reference: Reference
) -> list[bytes]:
    """The contents of some files at a checkpoint, in the order of the paths."""
    paths = checked_items(paths, "paths")
    stored_paths = [checked_stored_path(path) for path in paths]

    async def read(known: OpenedCheckpoint) -> list[bytes]:
        found = await get_files(context, known, stored_paths)
        pairs = zip(paths, found, strict=True)
        files = [_checked(path, stored, known) for path, stored in pairs]
        return await contents(context, known.head.family, files)

    return await read_at(context, thread, reference, read)


async def read_file(
    context: Context, thread: str, path: FilePath, reference: Reference
) -> bytes:
    """The content of one file at a checkpoint."""
    [content] = await read_files(context, thread, [path], reference)
    return content


def _checked(
    path: FilePath, found: StoredFile | None, known: OpenedCheckpoint
) -> StoredFile:
    if found is None or found.entry.is_directory:
        raise missing_file(path, known.head)
    return found


def missing_file(path: FilePath, checkpoint: Checkpoint) -> NotFound:
    """The error for a path at which a checkpoint has no file."""
    name = os.fsdecode(checked_stored_path(path))
    return NotFound(
        f"checkpoint {checkpoint.id!r} has no file {name!r}; files() lists what it has",
        code="no_file",
        thread=checkpoint.thread,
        reference=name,
    )
