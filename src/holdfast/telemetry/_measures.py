"""The backend's work for one operation, in names and numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from holdfast._port import (
    Backend,
    Key,
    Outcome,
    Receipt,
    StateKey,
    Stored,
    ThreadKey,
    Write,
)
from holdfast._port.layer import Layer
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.errors import Conflict

R = TypeVar("R")


class Measures:
    """The threads that an operation used and what it wrote; never any content."""

    __slots__ = (
        "agent",
        "checkpoint",
        "conflicts",
        "logical",
        "named",
        "read",
        "saved",
        "seconds",
        "shared",
        "stored",
        "written",
    )

    def __init__(self) -> None:
        # The thread that the operation was called for, if its arguments say it.
        self.named: str | None = None
        # The thread that got a checkpoint, and all that were written to and read.
        self.saved: str | None = None
        self.written: set[str] = set()
        self.read: set[str] = set()
        self.agent: str | None = None
        self.checkpoint: Checkpoint | None = None
        self.logical = 0
        self.stored = 0
        self.conflicts: list[str] = []
        # Of a commit: how many shared it, and how long the disk took.
        self.shared = 0
        self.seconds: float | None = None

    @property
    def thread(self) -> str | None:
        """The thread of the operation, ``None`` if it is about several or none."""
        if self.named is not None or self.saved is not None:
            return self.named or self.saved
        names = self.written or self.read
        return next(iter(names)) if len(names) == 1 else None

    def committed(self, writes: Iterable[Write], receipts: Iterable[Receipt]) -> None:
        """Take note of writes that were made."""
        self.shared = max(self.shared, 1)
        for write, receipt in zip(writes, receipts, strict=True):
            self.written.add(write.thread)
            self.stored += _size(write, receipt)
            if write.start is not None:
                self.agent = write.start.agent or self.agent
            if write.checkpoint is not None:
                self.checkpoint = write.checkpoint
                self.saved = write.thread
                self.logical += write.checkpoint.size

    def report(self, shared: int, seconds: float | None) -> None:
        """Take note of how a commit went; the backend calls this."""
        self.shared = max(self.shared, shared)
        if seconds is not None:
            self.seconds = (self.seconds or 0.0) + seconds

    def found(self, key: object, record: object) -> None:
        """Take note of a record that was read."""
        if isinstance(key, ThreadKey | StateKey):
            self.read.add(key.name)
        if isinstance(record, Stored):
            self.checkpoint = record.thread.head
            record = record.thread
        if isinstance(record, ThreadRecord):
            self.agent = record.agent or self.agent


def _size(write: Write, receipt: Receipt) -> int:
    size = receipt.packed
    if size is None:
        size = sum(len(segment.data) for segment in write.segments)
    size += sum(len(entry.data) for entry in write.entries)
    return size + (len(write.checkpoint.manifest) if write.checkpoint else 0)


class MeasuringBackend(Layer):
    """The backend of one operation, which takes note of what it is asked for."""

    def __init__(self, backend: Backend, measures: Measures) -> None:
        super().__init__(backend)
        self._measures = measures

    async def commit(self, writes: Sequence[Write]) -> list[Receipt]:
        measures = self._measures
        # One of them is enough: they are committed together.
        reporting = [replace(write, report=measures.report) for write in writes[:1]]
        reporting += writes[1:]
        try:
            receipts = await super().commit(reporting)
        except Conflict as conflict:
            measures.conflicts.append(conflict.code)
            raise
        measures.committed(writes, receipts)
        return receipts

    def commit_each(self, batches: Sequence[Sequence[Write]]) -> Sequence[Outcome]:
        """Pass it on: the writer thread of a store does not go through this layer."""
        return super().commit_each(batches)

    async def read(self, keys: Sequence[Key[R]]) -> list[R | None]:
        records = await super().read(keys)
        for key, record in zip(keys, records, strict=True):
            self._measures.found(key, record)
        return records
