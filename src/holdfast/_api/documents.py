"""A store's documents, for the sync and the async API."""

from __future__ import annotations

from typing import Any

from holdfast._api.runner import AsyncRunner, Runner
from holdfast._api.thread import AsyncThread, Thread
from holdfast._engine.records import documents
from holdfast._engine.threads.lineage import Reference
from holdfast._port import Start
from holdfast._values.records import UNSET, Checkpoint, Page, Unset
from holdfast._values.reference import HEAD
from holdfast.documents import Document, DocumentSummary


class Documents:
    """A store's documents; ``store.documents``.

    A document is the thread ``document:<name>``, with its history.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def thread(self, name: str) -> Thread:
        """The thread of a document, for its history, diffs and rewinds."""
        return Thread(
            self._runner, documents.thread_of(name), Start(kind=documents.KIND)
        )

    def save(
        self,
        name: str,
        content: object,
        *,
        metadata: dict[str, Any] | None = None,
        expect: Reference | Unset | None = UNSET,
    ) -> Document:
        """Save text, JSON or a typed object under a name such as ``notes/rust``.

        A document has one content whatever its format: text and JSON that belong
        together need two names, such as ``notes/rust.md`` and ``notes/rust.json``.
        Without ``metadata`` the stored metadata stay. ``expect`` is the checkpoint that
        the document must be at, ``None`` if it must be new; otherwise `Conflict` is
        raised.
        """
        return self._runner.run(
            documents.save, name, content, metadata=metadata, expect=expect
        )

    def load(self, name: str, ref: Reference = HEAD, *, type: Any = None) -> Document:
        """A document as it is, or as it was at a checkpoint.

        ``type`` converts the content, as in `Thread.load`.
        """
        return self._runner.run(documents.load, name, ref, type)

    def find(self, name: str, *, type: Any = None) -> Document | None:
        """Like `load`, but ``None`` if there is no such document."""
        return self._runner.run(documents.find, name, type)

    def list(
        self,
        category: str | None = None,
        *,
        nested: bool = False,
        limit: int | None = 100,
        after: int | None = None,
    ) -> Page[DocumentSummary]:
        """The documents of a category, or all, last used first.

        With ``nested`` also those of the categories inside it.
        """
        return self._runner.run(
            documents.summaries, category, nested=nested, limit=limit, after=after
        )

    def history(
        self,
        name: str,
        *,
        limit: int | None = 100,
        before: Reference | int | None = None,
    ) -> Page[Checkpoint]:
        """The checkpoints of a document, newest first."""
        return self._runner.run(documents.versions, name, limit, before)

    def delete(self, *names: str) -> int:
        """Delete documents; returns how many there were."""
        return self._runner.run(documents.delete, names)


class AsyncDocuments:
    """Like `Documents`, awaited."""

    def __init__(self, runner: AsyncRunner) -> None:
        self._runner = runner

    def thread(self, name: str) -> AsyncThread:
        return AsyncThread(
            self._runner, documents.thread_of(name), Start(kind=documents.KIND)
        )

    async def save(
        self,
        name: str,
        content: object,
        *,
        metadata: dict[str, Any] | None = None,
        expect: Reference | Unset | None = UNSET,
    ) -> Document:
        return await self._runner.run(
            documents.save, name, content, metadata=metadata, expect=expect
        )

    async def load(
        self, name: str, ref: Reference = HEAD, *, type: Any = None
    ) -> Document:
        return await self._runner.run(documents.load, name, ref, type)

    async def find(self, name: str, *, type: Any = None) -> Document | None:
        return await self._runner.run(documents.find, name, type)

    async def list(
        self,
        category: str | None = None,
        *,
        nested: bool = False,
        limit: int | None = 100,
        after: int | None = None,
    ) -> Page[DocumentSummary]:
        return await self._runner.run(
            documents.summaries, category, nested=nested, limit=limit, after=after
        )

    async def history(
        self,
        name: str,
        *,
        limit: int | None = 100,
        before: Reference | int | None = None,
    ) -> Page[Checkpoint]:
        return await self._runner.run(documents.versions, name, limit, before)

    async def delete(self, *names: str) -> int:
        return await self._runner.run(documents.delete, names)
