"""The files of a checkpoint: pages of their list, and the content of one."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from mimetypes import guess_type
from typing import Any

import msgspec

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.files.read import contents, find_listing
from holdfast._engine.threads.files import missing_file
from holdfast._engine.threads.listing import get
from holdfast._engine.threads.load import current
from holdfast._port import CheckpointKey
from holdfast._values.file_diff import as_text
from holdfast._values.file_listing import Listing
from holdfast._values.files import TreeChanges, compare
from holdfast._values.records import Checkpoint
from holdfast._values.stored_file import StoredFile
from holdfast.errors import NotFound, Unstorable
from holdfast.views.files import MOST_FILES, path_text
from holdfast.views.growth import manifest_of
from holdfast.views.showing import PageSize, Position, Showing

# Of larger files only the size is shown.
LARGEST = 16 << 20
PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


class FilesQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the list, in the order of the paths; ``cursor`` continues a page."""

    checkpoint: str
    limit: PageSize = 200
    cursor: Position = 0


class FileQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One file: by its path, or by its position in the list."""

    checkpoint: str
    path: str | None = None
    position: Position | None = None


async def files_document(
    context: Context, query: FilesQuery, showing: Showing
) -> dict[str, Any]:
    """A page of the files, each with what the checkpoint changed of it."""
    checkpoint = await _checkpoint(context, query.checkpoint)
    listing = await _listing(context, checkpoint)
    before = await _before(context, checkpoint, listing)
    changes = compare(before.tree, listing.tree)
    changed_here = _by_path(changes)
    end = query.cursor + query.limit
    page = enumerate(_paths(listing)[query.cursor : end], query.cursor)
    files = [
        {
            "position": position,
            **_about(listing.files[path], showing),
            "change": changed_here.get(path),
        }
        for position, path in page
    ]
    return {
        "saved": manifest_of(checkpoint).files is not None,
        "total": len(listing.files),
        "bytes": sum(stored.size for stored in listing.files.values()),
        "files": files,
        "next": end if end < len(listing.files) else None,
        "counts": _counts(changes),
        "removed": [_shown(path, showing) for path in changes.removed[:MOST_FILES]],
        "omitted": [
            {"path": _shown(path, showing), "reason": reason}
            for path, reason in listing.about.omitted[:MOST_FILES]
        ],
        "more_omitted": max(0, len(listing.about.omitted) - MOST_FILES),
    }


async def file_document(
    context: Context, query: FileQuery, showing: Showing
) -> dict[str, Any]:
    """One file, with its text if it is one; a long text is cut."""
    checkpoint = await _checkpoint(context, query.checkpoint)
    listing = await _listing(context, checkpoint)
    stored = _find(checkpoint, listing, query)
    content = await _content(context, checkpoint, stored)
    text = None if content is None else as_text(content)
    is_binary = content is not None and text is None
    return {
        **_about(stored, showing),
        "media": _picture(stored) if is_binary else None,
        "text": None if text is None else showing.text(text),
    }


async def whole_file(
    context: Context, checkpoint_id: str, position: int, showing: Showing
) -> dict[str, Any]:
    """The content of one file in full: its text, or what a picture is made of."""
    checkpoint = await _checkpoint(context, checkpoint_id)
    listing = await _listing(context, checkpoint)
    query = FileQuery(checkpoint=checkpoint_id, position=position)
    stored = _find(checkpoint, listing, query)
    content = await _content(context, checkpoint, stored)
    if content is None:
        raise Unstorable("file", f"is larger than {LARGEST} bytes; use holdfast show")
    media, text = _picture(stored), as_text(content)
    if text is not None:
        return {"text": showing.whole(text)}
    if media is None:  # nothing could be redacted in it
        raise Unstorable("file", "is neither text nor a picture; use holdfast show")
    return {"media": media, "base64": b64encode(content).decode()}


async def _checkpoint(context: Context, id_: str) -> Checkpoint:
    return await current(context, await get(context, id_))


async def _listing(context: Context, checkpoint: Checkpoint) -> Listing:
    return await find_listing(context, OpenedCheckpoint.of(checkpoint)) or Listing()


async def _before(
    context: Context, checkpoint: Checkpoint, listing: Listing
) -> Listing:
    """The files of the parent; its list is read only if it is another one."""
    if checkpoint.parent is None:
        return Listing()
    key = CheckpointKey(checkpoint.family, checkpoint.parent)
    [parent] = await context.backend.read([key])
    if parent is None:
        return Listing()
    if manifest_of(parent).files == manifest_of(checkpoint).files:
        return listing
    return await _listing(context, parent)


def _paths(listing: Listing) -> list[bytes]:
    return sorted(listing.files)


def _find(checkpoint: Checkpoint, listing: Listing, query: FileQuery) -> StoredFile:
    """The file that a query means."""
    if query.path is not None:
        path = os.fsencode(query.path)
        if path not in listing.files:
            raise missing_file(path, checkpoint)
        return listing.files[path]
    position = query.position
    if position is None:
        raise Unstorable("file", "needs a path or a position")
    if position >= len(listing.files):
        text = f"checkpoint {checkpoint.id!r} has no file {position}; see its files"
        raise NotFound(text, code="no_file", reference=str(position))
    return listing.files[_paths(listing)[position]]


async def _content(
    context: Context, checkpoint: Checkpoint, stored: StoredFile
) -> bytes | None:
    if stored.size > LARGEST:
        return None
    [content] = await contents(context, checkpoint.family, [stored])
    return content


def _about(stored: StoredFile, showing: Showing) -> dict[str, Any]:
    entry = stored.entry
    kind = "link" if entry.is_link else "folder" if entry.is_directory else "file"
    return {
        "path": _shown(stored.path, showing),
        "kind": kind,
        "size": stored.size,
        "mode": f"{stored.mode:o}",
        "sha256": stored.digest.hex(),
    }


def _shown(path: bytes, showing: Showing) -> str:
    return showing.whole(path_text(os.fsdecode(path)))


def _picture(stored: StoredFile) -> str | None:
    """The type of a picture that every browser shows, by the name of its file."""
    media, _ = guess_type(path_text(os.fsdecode(stored.path)))
    return media if media in PICTURES and not stored.entry.is_link else None


def _by_path(changes: TreeChanges) -> Mapping[bytes, str]:
    return {
        **dict.fromkeys(changes.added, "added"),
        **dict.fromkeys(changes.changed, "changed"),
        **dict.fromkeys(changes.mode_changed, "mode changed"),
    }


def _counts(changes: TreeChanges) -> dict[str, int]:
    return {
        "added": len(changes.added),
        "removed": len(changes.removed),
        "changed": len(changes.changed),
        "mode changed": len(changes.mode_changed),
    }
