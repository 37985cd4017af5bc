"""Lists of files as a changed program saves them."""

from __future__ import annotations

import stat
from collections.abc import Callable, Sequence
from hashlib import sha256

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.files.draft import FilesDraft, PlannedFiles
from holdfast._values.file_listing import Level, Listing
from holdfast._values.manifest import FileLog
from holdfast._values.records import Segment
from holdfast._values.rope import Blocks
from holdfast._values.runs import count_segments
from holdfast._values.segment_use import as_runs, joined
from holdfast._values.stored_file import StoredFile

FILE, LINK, FOLDER = stat.S_IFREG | 0o755, stat.S_IFLNK | 0o777, stat.S_IFDIR | 0o700
# A path, the mode, and the content or the target of a link.
Entry = tuple[bytes, int, bytes]


class ForgedFiles(FilesDraft):
    """What a save takes as ``files``, with a list that nothing has checked.

    ``top`` gives the bytes of the list for the numbers of the segments with the
    contents.
    """

    def __init__(
        self, contents: Sequence[bytes], top: Callable[[Sequence[int]], bytes]
    ) -> None:
        self._forged, self._top = contents, top

    async def plan(
        self,
        context: Context,  # noqa: ARG002 - nothing is read
        parent: OpenedCheckpoint | None,
        blocks: Blocks,
    ) -> PlannedFiles:
        """The segments of the contents and of the list."""
        log = parent.manifest.files if parent else None
        following, segments = log.next_number if log else 0, list[Segment]()
        for data in (*self._forged, None):
            number = blocks.number(following)
            following = number + 1
            numbers = [segment.number for segment in segments]
            content = self._top(numbers) if data is None else data
            segments.append(Segment(number, content))
        top = segments[-1]
        added = as_runs(segment.number for segment in segments)
        # A list may name levels of the one before.
        runs = joined([*(log.runs if log else ()), *added])
        size = sum(len(segment.data) for segment in segments)
        made = FileLog(runs, size, sha256(top.data).digest(), top.number, following)
        return PlannedFiles(made, Listing(), segments, count_segments(runs))


def forged(entries: Sequence[Entry], removed: Sequence[bytes] = ()) -> ForgedFiles:
    """Files with these paths, whatever they are, in the order in which they come."""

    def top(numbers: Sequence[int]) -> bytes:
        pairs = zip(entries, numbers, strict=True)
        files = tuple(
            StoredFile(path, mode, len(content), sha256(content).digest(), (number, 1))
            for (path, mode, content), number in pairs
        )
        return Level(files=files, removed=tuple(removed)).encoded()

    return ForgedFiles([content for _, _, content in entries], top)
