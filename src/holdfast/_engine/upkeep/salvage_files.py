"""The files of a damaged store: those that can be read whole, and which cannot."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast._engine.files.draft import FilesDraft
from holdfast._engine.files.read import content_of, read_chunks, read_listing
from holdfast._port import Inspection
from holdfast._values.file_chunks import cut
from holdfast._values.file_listing import Listing
from holdfast._values.files import FileEntry, Omitted, Tree
from holdfast._values.manifest import FileLog
from holdfast._values.records import Run, Segment
from holdfast._values.stored_file import StoredFile
from holdfast.errors import Corrupt


class SalvagedFiles:
    """Files of one checkpoint; what is damaged is listed as left out."""

    def __init__(self, inspection: Inspection, family: int) -> None:
        self._inspection, self._family = inspection, family
        self._listing = Listing()
        self.tree = Tree()
        self.damaged: list[str] = []

    async def read(self, log: FileLog) -> FilesDraft:
        """What can be saved of files; `Corrupt` if their list is damaged."""
        self._listing = await read_listing(self._fetch, log)
        tree = self._listing.tree
        whole = {
            path: tree.entries[path]
            for path, stored in self._listing.files.items()
            if await self._is_whole(stored)
        }
        lost = [entry for path, entry in tree.entries.items() if path not in whole]
        self.damaged = [entry.name for entry in lost]
        omitted = (Omitted(entry.path, "damaged") for entry in lost)
        self.tree = Tree(whole, tree.rules, (*tree.omitted, *omitted))
        return FilesDraft(self)

    async def chunks(self, entry: FileEntry) -> list[bytes]:
        return list(cut([await self._content(self._listing.files[entry.path])]))

    async def renew(self) -> bool:
        return False

    async def _is_whole(self, stored: StoredFile) -> bool:
        try:
            await self._content(stored)
        except Corrupt:
            return False
        return True

    async def _content(self, stored: StoredFile) -> bytes:
        return content_of(stored, await read_chunks(self._fetch, [stored]))

    async def _fetch(self, runs: Sequence[Run]) -> list[Segment]:
        found = await self._inspection.segments([(self._family, run) for run in runs])
        segments = [segment for run in found for segment in run]
        whole = [segment for segment in segments if segment is not None]
        if len(whole) < len(segments):
            raise Corrupt("the files", "some of their segments are lost")
        return whole
