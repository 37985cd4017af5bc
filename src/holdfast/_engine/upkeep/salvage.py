"""Copying everything that can still be read out of a damaged store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.files.draft import FilesDraft
from holdfast._engine.files.read import content_of, read_chunks, read_listing
from holdfast._engine.threads import moves, removal
from holdfast._engine.threads.drafts import StateDraft
from holdfast._engine.threads.save import Options, save_as_stored
from holdfast._engine.upkeep.verify import Problem, Read
from holdfast._port import CheckpointKey, Inspection, Place, Start, Write
from holdfast._values.file_chunks import cut
from holdfast._values.file_listing import Listing
from holdfast._values.files import FileEntry, Omitted, Tree
from holdfast._values.manifest import FileLog, decode_manifest
from holdfast._values.records import (
    UNSET,
    Checkpoint,
    Entry,
    Origin,
    Run,
    Segment,
)
from holdfast._values.rope import Rope, joined
from holdfast._values.stored_file import StoredFile
from holdfast.errors import Corrupt, HoldfastError

R = TypeVar("R")


class Salvaged(msgspec.Struct, frozen=True):
    """Counts of the records copied out of a damaged store, and a list of the losses."""

    threads: int
    checkpoints: int
    journal_entries: int
    lost: tuple[Problem, ...]


async def salvage(context: Context, open_target: Callable[[], Context]) -> Salvaged:
    """Copy every checkpoint that can be read to a new store, with its id and time.

    Threads of scopes, their owners and agents keep the names they are stored under.
    """
    inspection = await context.backend.inspect()
    try:
        target = open_target()
        try:
            return await _Salvage(context, target, inspection).run()
        except HoldfastError as error:
            error.message += "; the new store is not complete: remove it, salvage again"
            raise
        finally:
            await target.backend.close()
    finally:
        await inspection.close()


class _Salvage:
    """A salvage in progress."""

    def __init__(
        self, context: Context, target: Context, inspection: Inspection
    ) -> None:
        self.context, self.target, self.inspection = context, target, inspection
        self.starts: dict[str, Start] = {}
        # The numbers that families have in the target.
        self.families: dict[int, int] = {}
        # For each checkpoint that could not be copied, its nearest copied ancestor.
        self.instead: dict[str, str] = {}
        # The ids of the heads in the target.
        self.heads: dict[str, str] = {}
        # The files of copied checkpoints, as they are in the damaged store.
        self.logs: dict[str, FileLog] = {}
        self.lost: list[Problem] = []
        self.saved = self.recorded = 0

    async def run(self) -> Salvaged:
        deleted: list[str] = []
        async for thread in self._all(self.inspection.threads):
            if thread.deleted_at is None:
                self.starts[thread.id] = Start(
                    thread.kind, thread.owner, thread.agent, thread.encoded_metadata
                )
            else:
                deleted.append(thread.id)
        async for checkpoint in self._all(self.inspection.saves):
            await self._copy(checkpoint)
        async for head in self._all(self.inspection.heads):
            await self._go_to(head.thread, head.family, head.checkpoint)
        for name in deleted:
            if name not in self.starts:
                await self._delete_again(name)
        async for entry in self._all(self.inspection.entries):
            await self._record(entry)
        return Salvaged(len(self.heads), self.saved, self.recorded, tuple(self.lost))

    async def _all(self, read: Read[R]) -> AsyncIterator[R]:
        """All records that can be read; the others are noted as lost."""
        after: Place | None = Place()
        while after is not None:
            portion = await read(after)
            self.lost += map(Problem, portion.damage)
            if portion.lost:
                for name in await self.inspection.headed_by(portion.lost):
                    text = f"the head of thread {name!r} is damaged or missing"
                    self.lost.append(Problem(text))
            for record in portion.records:
                yield record
            after = portion.end

    async def _copy(self, checkpoint: Checkpoint) -> None:
        parent = self.instead.get(checkpoint.parent or "", checkpoint.parent)
        try:
            draft = await self._draft(checkpoint)
        except HoldfastError as error:
            self._lose(str(error), checkpoint)
            if parent is not None:
                self.instead[checkpoint.id] = parent
            return
        await self._go_to(checkpoint.thread, checkpoint.family, parent)
        how = Options(
            label=checkpoint.label,
            tags=checkpoint.tags,
            metadata=checkpoint.encoded_metadata,
            kind=checkpoint.kind,
            id=checkpoint.id,
            start=self._start(checkpoint.thread),
            files=await self._files(checkpoint),
        )
        then = replace(self.target, clock=lambda: checkpoint.saved_at)
        copied = await save_as_stored(then, checkpoint.thread, draft, how)
        self.heads[checkpoint.thread] = copied.id
        self.families[checkpoint.family] = copied.family
        self.saved += 1

    async def _files(self, checkpoint: Checkpoint) -> FilesDraft | None:
        """The files to save; ``None`` if they are those of the copied parent."""
        log = decode_manifest(checkpoint).files
        before = self.logs.get(self.heads.get(checkpoint.thread, ""))
        if log is None:
            return None
        self.logs[checkpoint.id] = log
        if log == before:
            return None
        salvaged = _SalvagedFiles(self.inspection, checkpoint.family)
        try:
            draft = await salvaged.read(log)
        except Corrupt as error:
            self._lose(f"the files: {error}", checkpoint)
            return None
        for name in salvaged.damaged:
            self._lose(f"the file {name!r} is damaged", checkpoint)
        return draft

    def _lose(self, what: str, checkpoint: Checkpoint) -> None:
        self.lost.append(Problem(what, checkpoint.thread, checkpoint.id))

    async def _draft(self, checkpoint: Checkpoint) -> StateDraft:
        manifest = decode_manifest(checkpoint)
        texts: dict[str, bytes] = {}
        for name, value in manifest.values.items():
            if isinstance(value, Rope):
                texts[name] = await self._text(checkpoint, name, value)
            else:
                texts[name] = value
        return StateDraft.of_texts(texts, is_mapping=manifest.is_mapping)

    async def _text(self, checkpoint: Checkpoint, name: str, rope: Rope) -> bytes:
        parts: list[bytes] = []
        for run in rope.runs:
            [segments] = await self.inspection.segments([(checkpoint.family, run)])
            whole = [segment for segment in segments if segment is not None]
            if len(whole) < len(segments):
                raise Corrupt(f"the value {name!r}", "some of its segments are lost")
            parts += (segment.data for segment in whole)
        return bytes(joined(rope, parts))

    async def _go_to(self, thread: str, family: int, id_: str | None) -> None:
        """Make a checkpoint that was copied the head of a thread."""
        id_ = self.instead.get(id_ or "", id_)
        if id_ is None or family not in self.families or self.heads.get(thread) == id_:
            return
        key = CheckpointKey(self.families[family], id_)
        [above] = await self.target.backend.read([key])
        if above is None:
            return
        if thread not in self.heads:
            await self._fork(thread, above)
        else:
            await moves.turn(self.target, thread, "rewind", above)
        self.heads[thread] = above.id

    async def _fork(self, thread: str, above: Checkpoint) -> None:
        origin = Origin(above.thread, above.id)
        start = replace(self._start(thread), head=above, origin=origin)
        write = Write(thread=thread, at=above.saved_at, expect=None, start=start)
        await self.target.backend.commit([write])

    def _start(self, thread: str) -> Start:
        return self.starts.get(thread, Start())

    async def _delete_again(self, name: str) -> None:
        """Delete a thread that was copied for its forks, if they need all of it."""
        thread = await self.target.find_thread(name)
        if thread is not None and await removal.needs_all(self.target, thread):
            await removal.delete_threads(self.target, [name])
            del self.heads[name]

    async def _record(self, entry: Entry) -> None:
        write = Write(
            thread=entry.thread,
            at=entry.recorded_at,
            expect=UNSET,
            start=self._start(entry.thread),
            entries=(entry,),
        )
        await self.target.backend.commit([write])
        self.recorded += 1


class _SalvagedFiles:
    """The files of one checkpoint; damaged ones are listed as left out."""

    def __init__(self, inspection: Inspection, family: int) -> None:
        self._inspection, self._family = inspection, family
        self._listing = Listing()
        self.tree = Tree()
        self.damaged: list[str] = []

    async def read(self, log: FileLog) -> FilesDraft:
        """The files that can be saved; `Corrupt` if their list is damaged."""
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
