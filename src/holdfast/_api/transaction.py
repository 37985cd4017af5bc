"""Transactions over several threads, for the sync and the async API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self, Unpack

from holdfast._api.keywords import StartOptions, StreamOptions, start, stream_start
from holdfast._api.runner import AsyncRunner, Runner
from holdfast._api.wrong_api import AsyncOnly, SyncOnly
from holdfast._engine.records.streams import EventDraft, appending, thread_of
from holdfast._engine.threads import save
from holdfast._engine.threads.amend import amended
from holdfast._engine.threads.drafts import Draft, ListsDraft, StateDraft
from holdfast._engine.threads.journal import encoded_entries
from holdfast._engine.threads.lineage import Reference
from holdfast._engine.threads.save import SaveOptions
from holdfast._engine.threads.transaction import (
    Planned,
    PlannedRecord,
    PlannedSave,
    transaction,
)
from holdfast._port import Start
from holdfast._values.records import UNSET, Checkpoint, Unset, checked_name
from holdfast.errors import Closed, Unstorable


class Changes:
    """The changes that a transaction makes when its block ends.

    ``saved`` are the checkpoints that it made, by thread; there are none before that.
    """

    def __init__(self) -> None:
        self.saved: dict[str, Checkpoint] = {}
        self._planned: dict[str, Planned] = {}
        self._is_open = False

    def thread(self, id: str, **options: Unpack[StartOptions]) -> ThreadChange:
        """A handle to change a thread with, once; the options are those of a thread."""
        return ThreadChange(self, id, start(options))

    def stream(self, name: str, **options: Unpack[StreamOptions]) -> StreamChange:
        """A handle to append an event with, once; the options are those of a stream."""
        return StreamChange(self, name, stream_start(options))

    def add(self, planned: Planned) -> None:
        """Plan a change; `Unstorable` if its thread is changed already."""
        # A program without a type checker may give anything.
        if not isinstance(planned, PlannedSave | PlannedRecord):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Unstorable(
                "transaction", "takes changes; use tx.thread(id).save(...)"
            )
        if not self._is_open:
            raise Closed("a transaction is used inside of its block; begin another")
        if planned.thread in self._planned:
            text = f"thread {planned.thread!r} is changed twice; use one amend()"
            raise Unstorable("transaction", text)
        self._planned[planned.thread] = planned


class ThreadChange:
    """Plans one change of a thread; nothing is read or written yet."""

    def __init__(self, changes: Changes, name: str, begun: Start) -> None:
        self._changes = changes
        self._start = begun
        self.id = checked_name(name)

    def save(self, state: object, **options: Unpack[SaveOptions]) -> None:
        """Like `Thread.save`."""
        self._add(StateDraft(state), options)

    def extend(
        self, lists: Mapping[str, Sequence[object]], **options: Unpack[SaveOptions]
    ) -> None:
        """Like `Thread.extend`."""
        self._add(ListsDraft(lists), options)

    def amend(
        self,
        *,
        lists: Mapping[str, Sequence[object]] | None = None,
        values: Mapping[str, object] | None = None,
        remove: Sequence[str] = (),
        **options: Unpack[SaveOptions],
    ) -> None:
        """Like `Thread.amend`."""
        self._add(amended(lists, values, remove), options)

    def record_all(
        self,
        values: Mapping[str, object],
        *,
        expect: Reference | Unset | None = UNSET,
    ) -> None:
        """Like `Thread.record_all`, on the thread; ``expect`` is the head it must have.

        A value whose key is taken stays as it is. To fail instead, save with ``once``.
        """
        entries = encoded_entries(values)
        self._changes.add(PlannedRecord(self.id, self._start, expect, entries))

    def check(self, expect: Reference) -> None:
        """Change nothing; `Conflict` for the transaction unless this is the head."""
        self._changes.add(PlannedRecord(self.id, None, expect))

    def _add(self, draft: Draft, options: SaveOptions) -> None:
        how = save.options(start=self._start, **options)
        self._changes.add(PlannedSave(self.id, draft, how))


class StreamChange:
    """Plans one event of a stream; nothing is read or written yet."""

    def __init__(self, changes: Changes, name: str, begun: Start) -> None:
        self._changes = changes
        self._start = begun
        self.id = thread_of(name)

    def append(self, event: object, *, key: str | None = None) -> None:
        """Like `Stream.append`; if the key is taken, the transaction fails.

        Nothing is changed then: `Conflict` with the code ``entry_taken``.
        """
        draft = EventDraft(self.id, event, key)
        self._changes.add(PlannedSave(self.id, draft, appending(self._start)))


class Transaction(Changes, SyncOnly):
    """Changes of several threads, all or none; made by `Store.transaction`."""

    def __init__(self, runner: Runner) -> None:
        super().__init__()
        self._runner = runner

    def __enter__(self) -> Self:
        self._is_open = True
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._is_open = False
        if kind is None:
            planned = tuple(self._planned.values())
            self.saved = self._runner.run(transaction, planned)


class AsyncTransaction(Changes, AsyncOnly):
    """Like `Transaction`, for ``async with``; its methods are not awaited."""

    def __init__(self, runner: AsyncRunner) -> None:
        super().__init__()
        self._runner = runner

    async def __aenter__(self) -> Self:
        self._is_open = True
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        self._is_open = False
        if kind is None:
            planned = tuple(self._planned.values())
            self.saved = await self._runner.run(transaction, planned)
