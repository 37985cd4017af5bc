"""The files of a merge: those of three checkpoints, and where their contents are."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.files.draft import FilesDraft
from holdfast._engine.files.read import contents, find_listing
from holdfast._values.file_chunks import cut
from holdfast._values.file_listing import Listing
from holdfast._values.file_merge import MergedTree, merge_trees
from holdfast._values.files import FileEntry, Tree
from holdfast._values.merge import Decide
from holdfast._values.records import Checkpoint
from holdfast._values.stored_file import StoredFile


async def merged_files(
    context: Context, checkpoints: Sequence[Checkpoint], decide: Decide
) -> MergedTree | None:
    """The files out of a base, ours and theirs; ``None`` if theirs has none."""
    base, ours, theirs = [await _listing(context, one) for one in checkpoints]
    if theirs is None:
        return None
    trees = [each.tree if each else Tree() for each in (base, ours, theirs)]
    return merge_trees(trees, decide)


async def files_draft(
    context: Context, checkpoints: Sequence[Checkpoint], tree: Tree
) -> FilesDraft:
    """The draft of merged files; reads only contents that the parent lacks."""
    listings = [await _listing(context, one) for one in checkpoints]
    stored = {
        each.digest: each
        for listing in listings
        if listing is not None
        for each in listing.files.values()
    }
    return FilesDraft(_MergedContents(context, checkpoints[0].family, stored, tree))


async def _listing(context: Context, checkpoint: Checkpoint) -> Listing | None:
    return await find_listing(context, OpenedCheckpoint.of(checkpoint))


class _MergedContents:
    """Files whose contents are in the store already."""

    def __init__(
        self, context: Context, family: int, stored: dict[bytes, StoredFile], tree: Tree
    ) -> None:
        self._context, self._family, self._stored = context, family, stored
        self.tree = tree

    async def chunks(self, entry: FileEntry) -> list[bytes]:
        found = [self._stored[entry.digest]]
        [content] = await contents(self._context, self._family, found)
        return list(cut(iter([content])))

    async def renew(self) -> bool:
        return False
