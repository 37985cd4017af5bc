"""A store's documents through both doors."""

from __future__ import annotations

from typing import Any

from holdfast._api.runner import Passage
from holdfast._api.thread import AsyncThread, Thread
from holdfast._engine.context import Context
from holdfast._engine.records import documents
from holdfast._engine.records.documents import KIND, thread_of
from holdfast._engine.threads.lineage import Reference
from holdfast._port import Start, run
from holdfast._values.records import UNSET, Checkpoint, Page, Unset
from holdfast._values.reference import HEAD
from holdfast.documents import Document, DocumentSummary

START = Start(kind=KIND)


class Documents:
    """A store's documents; ``store.documents``.

    A document is the thread ``document:<name>``, with its history.
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    def thread(self, name: str) -> Thread:
        """The thread of a document, for its history, diffs and rewinds."""
        return Thread(self._context, thread_of(name), START)

    def save(
        self,
        name: str,
        content: object,
        *,
        metadata: dict[str, Any] | None = None,
        expect: Reference | Unset | None = UNSET,
    ) -> Document:
        """Save text or JSON under a name such as ``notes/rust``.

        The metadata stay as they are without new ones. ``expect`` is the checkpoint it
        must be at, ``None`` for a document that must be new; else `Conflict` is raised.
        """
        operation = documents.save(
            self._context, name, content, metadata=metadata, expect=expect
        )
        return run(operation)

    def load(self, name: str, ref: Reference = HEAD) -> Document:
        """A document as it is, or as it was at a checkpoint."""
        return run(documents.load(self._context, name, ref))

    def find(self, name: str) -> Document | None:
        """A document, ``None`` if there is none."""
        return run(documents.find(self._context, name))

    def list(
        self,
        category: str | None = None,
        *,
        nested: bool = False,
        limit: int | None = 100,
        after: int | None = None,
    ) -> Page[DocumentSummary]:
        """The documents of a category, or all, last used first.

        With ``nested`` those of the categories inside it, too.
        """
        operation = documents.summaries(
            self._context, category, nested=nested, limit=limit, after=after
        )
        return run(operation)

    def history(
        self,
        name: str,
        *,
        limit: int | None = 100,
        before: Reference | int | None = None,
    ) -> Page[Checkpoint]:
        """The checkpoints of a document, newest first."""
        return run(documents.versions(self._context, name, limit, before))

    def delete(self, *names: str) -> int:
        """Delete documents; returns how many there were."""
        return run(documents.delete(self._context, names))


class AsyncDocuments:
    """As `Documents`, awaited."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        self._context = passage.context

    def thread(self, name: str) -> AsyncThread:
        return AsyncThread(self._passage, thread_of(name), START)

    async def save(
        self,
        name: str,
        content: object,
        *,
        metadata: dict[str, Any] | None = None,
        expect: Reference | Unset | None = UNSET,
    ) -> Document:
        operation = documents.save(
            self._context, name, content, metadata=metadata, expect=expect
        )
        return await self._passage.run(operation)

    async def load(self, name: str, ref: Reference = HEAD) -> Document:
        return await self._passage.run(documents.load(self._context, name, ref))

    async def find(self, name: str) -> Document | None:
        return await self._passage.run(documents.find(self._context, name))

    async def list(
        self,
        category: str | None = None,
        *,
        nested: bool = False,
        limit: int | None = 100,
        after: int | None = None,
    ) -> Page[DocumentSummary]:
        operation = documents.summaries(
            self._context, category, nested=nested, limit=limit, after=after
        )
        return await self._passage.run(operation)

    async def history(
        self,
        name: str,
        *,
        limit: int | None = 100,
        before: Reference | int | None = None,
    ) -> Page[Checkpoint]:
        operation = documents.versions(self._context, name, limit, before)
        return await self._passage.run(operation)

    async def delete(self, *names: str) -> int:
        return await self._passage.run(documents.delete(self._context, names))
