"""The two doors to a store: `Store` blocks, `AsyncStore` is awaited."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterable, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from holdfast._api.agents import Agents, AsyncAgents
from holdfast._api.conversations import AsyncConversations, Conversations
from holdfast._api.documents import AsyncDocuments, Documents
from holdfast._api.message_kinds import MESSAGE_KINDS
from holdfast._api.options import open_new, over
from holdfast._api.runner import Passage, Worker
from holdfast._api.thread import AsyncThread, Thread
from holdfast._engine.context import Context
from holdfast._engine.records import last_messages as glancing
from holdfast._engine.search import index
from holdfast._engine.search import query as searching
from holdfast._engine.search.query import Match, SearchQuery
from holdfast._engine.threads import listing, removal
from holdfast._engine.threads import load as loading
from holdfast._engine.threads.listing import ThreadsQuery
from holdfast._engine.upkeep import (
    copy,
    sizes,
    statistics,
)
from holdfast._engine.upkeep import (
    prune as upkeep,
)
from holdfast._engine.upkeep import (
    salvage as salvaging,
)
from holdfast._engine.upkeep import (
    verify as checking,
)
from holdfast._engine.upkeep.copy import Copied
from holdfast._engine.upkeep.salvage import Salvaged
from holdfast._engine.upkeep.sizes import Heavy
from holdfast._engine.upkeep.statistics import Statistics
from holdfast._engine.upkeep.verify import Verification
from holdfast._port import Pruned, Start, run
from holdfast._values.records import (
    Change,
    Checkpoint,
    Page,
    Progress,
    ThreadRecord,
    checked_name,
    encode_metadata,
)
from holdfast.errors import Unsupported
from holdfast.retention import Retention

if TYPE_CHECKING:
    from holdfast._engine.upkeep.json_lines import Shown
    from holdfast.archive import Contents, Imported, Source, Target
    from holdfast.importers import Report

T = TypeVar("T")

POLL_SECONDS = 0.02


def start(
    kind: str,
    owner: str | None,
    agent: str | None,
    metadata: dict[str, object] | None,
) -> Start:
    """How a thread that does not exist yet shall begin."""
    return Start(
        kind=checked_name(kind, "kind"),
        owner=None if owner is None else checked_name(owner, "owner"),
        agent=None if agent is None else checked_name(agent, "agent"),
        metadata=encode_metadata(metadata),
    )


def importing(
    context: Context,
    path: str | os.PathLike[str],
    format_: str | None,
    dry_run: bool,
    progress: Progress | None,
) -> Coroutine[Any, Any, Report]:
    """An import that is about to be made."""
    # Imported here: few programs ever need it.
    from holdfast.importers import import_into  # noqa: PLC0415

    return import_into(
        context, path, format=format_, dry_run=dry_run, progress=progress
    )


def exporting(
    context: Context,
    to: Target,
    threads: Iterable[str] | None,
    since: datetime | None,
    progress: Progress | None,
) -> Coroutine[Any, Any, Contents]:
    """An export that is about to be made."""
    from holdfast._engine.upkeep.archive import export, selected  # noqa: PLC0415

    return export(context, to, selected(threads, since), progress)


def telling(
    context: Context,
    to: Target,
    wanted: tuple[Iterable[str] | None, datetime | None, Shown, bool, Iterable[str]],
    progress: Progress | None,
) -> Coroutine[Any, Any, int]:
    """An export as JSON Lines that is about to be made."""
    from holdfast._engine.upkeep.json_lines import export_lines, wanted_lines  # noqa: PLC0415

    return export_lines(context, to, wanted_lines(*wanted), progress)


def taking_in(
    context: Context, source: Source, dry_run: bool, progress: Progress | None
) -> Coroutine[Any, Any, Imported]:
    """The import of an archive that is about to be made."""
    from holdfast._engine.upkeep.archive import import_archive  # noqa: PLC0415

    return import_archive(context, source, dry_run=dry_run, progress=progress)


class Store:
    """Keeps threads of checkpoints; made by `holdfast.open`.

    Usable from several threads at once, and after a fork in the child as well.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.agents = Agents(context)
        self.conversations = Conversations(context)
        self.documents = Documents(context)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the file; closing twice is fine, everything else raises `Closed`."""
        try:
            self.agents.close()
        finally:
            self._context.cache.clear()
            run(self._context.backend.close())

    def using(self, connection: object) -> Store:
        """The same store over your own connection to PostgreSQL.

        What is saved is part of your transaction, with what else you write in it.
        """
        return Store(over(self._context, connection))

    # --- threads ----------------------------------------------------------------------

    def thread(
        self,
        id: str,  # noqa: A002 - public name
        *,
        kind: str = "thread",
        owner: str | None = None,
        agent: str | None = None,
        metadata: dict[str, object] | None = None,
    ) -> Thread:
        """A handle on a thread, existing or not.

        ``kind``, ``owner`` (a user), ``agent`` (whom it works for) and ``metadata`` are
        what a new thread begins with.
        """
        return Thread(self._context, id, start(kind, owner, agent, metadata))

    def threads(
        self,
        *,
        kind: str | None = None,
        owner: str | None = None,
        agent: str | None = None,
        prefix: str | None = None,
        metadata: dict[str, object] | None = None,
        limit: int | None = 100,
        after: int | None = None,
    ) -> Page[ThreadRecord]:
        """The threads that were saved to, last used first.

        Pins of agents' checkpoints are listed with ``kind="pin"`` only; ``metadata``
        lists the threads that have all its items; ``after`` is the cursor of the page
        before.
        """
        query = ThreadsQuery(
            kind=kind,
            owner=owner,
            agent=agent,
            prefix=prefix,
            metadata=metadata,
            limit=limit,
            after=after,
        )
        return run(listing.threads(self._context, query))

    def delete(
        self,
        *threads: str,
        owner: str | None = None,
        agent: str | None = None,
        kind: str | None = None,
        prefix: str | None = None,
    ) -> int:
        """Delete threads by name, or all that match the filters; returns how many."""
        operation = removal.delete_matching(
            self._context, threads, owner=owner, agent=agent, kind=kind, prefix=prefix
        )
        return run(operation)

    # --- checkpoints ------------------------------------------------------------------

    def get(self, id: str) -> Checkpoint:  # noqa: A002 - public name
        """The checkpoint with an id, or the only one whose id begins so."""
        return run(listing.get(self._context, id))

    @overload
    def load(self, checkpoint: Checkpoint | str, *, type: None = None) -> Any: ...
    @overload
    def load(self, checkpoint: Checkpoint | str, *, type: type[T]) -> T: ...
    def load(self, checkpoint: Checkpoint | str, *, type: Any = None) -> Any:  # noqa: A002
        """The state of a checkpoint of any thread."""
        state = run(listing.load(self._context, checkpoint))
        return loading.converted(state, type)

    def last_messages(self, checkpoints: Sequence[Checkpoint]) -> list[Any]:
        """The last message of each, for a history that says what it is about.

        It is what ends the list ``messages`` of a state, ``None`` if there is none. A
        page of history costs one request, however long the lists are.
        """
        return run(glancing.last_messages(self._context, checkpoints))

    def search(
        self,
        query: str,
        *,
        agent: str | None = None,
        owner: str | None = None,
        conversation: str | None = None,
        archived: bool | None = None,
        limit: int | None = 20,
        after: int | None = None,
        progress: Progress | None = None,
    ) -> Page[Match]:
        """The messages that hold a text in any case, newest first.

        Conversations, LangGraph's and other threads with a list of ``messages`` come in
        the order in which they were last used, the messages of one from its last on.
        ``agent``, ``owner``, ``conversation`` and ``archived`` say in which to look;
        ``after`` is the cursor of the page before, and what is used meanwhile moves to
        the front. The first search makes an index, later ones bring it up to date:
        ``progress`` is then told how many conversations of how many are done (by an
        `AsyncStore` in a thread of its own).
        """
        wanted = SearchQuery(
            text=query,
            kinds=MESSAGE_KINDS,
            agent=agent,
            owner=owner,
            conversation=conversation,
            archived=archived,
            limit=limit,
            after=after,
        )
        return run(searching.search(self._context, wanted, progress))

    # --- upkeep -----------------------------------------------------------------------

    def prune(self, policy: Retention, *, dry_run: bool = False) -> Pruned:
        """Remove what a policy does not keep, in one transaction.

        With ``dry_run`` nothing is removed, and the counts are what would be.
        """
        return run(upkeep.prune(self._context, policy, dry_run=dry_run))

    def compact(self) -> None:
        """Give the space of what was removed back to the file system."""
        return run(index.compact(self._context))

    def stats(self) -> Statistics:
        """Counts and sizes of the whole store."""
        return run(statistics.statistics(self._context))

    def heaviest(self, limit: int | None = 10) -> tuple[Heavy, ...]:
        """The threads that take the most space, together with all that share history.

        Heaviest first; all of them with ``limit=None``.
        """
        return run(sizes.heaviest(self._context, limit))

    def verify(
        self, *, quick: bool = False, progress: Progress | None = None
    ) -> Verification:
        """Check every checksum, digest and reference in the store.

        With ``quick``, only whether the files are as their technology left them.
        ``progress`` is told how many checkpoints of how many are done.
        """
        return run(checking.verify(self._context, quick=quick, progress=progress))

    def salvage(self, to: str) -> Salvaged:
        """Copy everything that can still be read into a new store."""
        return run(salvaging.salvage(self._context, lambda: open_new(to)))

    def import_from(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002 - public name
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Report:
        """Put what a foreign file or folder holds into this store.

        ``format`` is one of `holdfast.importers.formats`, told from the files without.
        The source is never changed, damage in it is reported and stops nothing else,
        and a second import adds nothing. With ``dry_run`` nothing is written.
        """
        operation = importing(self._context, path, format, dry_run, progress)
        return run(operation)

    def copy_to(self, other: Store, *, progress: Progress | None = None) -> Copied:
        """Copy everything into an empty store, whatever keeps it.

        Ids, order, digests and journal stay what they are. A copy that was interrupted
        goes on where it was; ``progress`` is told how many families are done.
        """
        return run(copy.copy(self._context, other._context, progress))

    def export_to(
        self,
        to: Target,
        *,
        threads: Iterable[str] | None = None,
        since: datetime | None = None,
        progress: Progress | None = None,
    ) -> Contents:
        """Write a portable archive to a new file, or to one open for writing bytes.

        Equal content gives equal bytes, whatever keeps it. ``threads`` go with all that
        share history with them; with ``since``, what was saved before it is left out
        but for the heads. ``progress`` is told how many checkpoints and segments of how
        many are done.
        """
        return run(exporting(self._context, to, threads, since, progress))

    def export_lines(
        self,
        to: Target,
        *,
        threads: Iterable[str] | None = None,
        since: datetime | None = None,
        shown: Shown = "state",
        heads: bool = False,
        redact: Iterable[str] = (),
        progress: Progress | None = None,
    ) -> int:
        """Write checkpoints as JSON Lines, thread by thread; returns how many.

        Each line holds a checkpoint with its state, or the ``messages`` of it; with
        ``heads`` there is one line for each thread. What stands at the paths in
        ``redact`` is left out: ``messages.*.content``.
        """
        wanted = (threads, since, shown, heads, redact)
        return run(telling(self._context, to, wanted, progress))

    def import_archive(
        self,
        source: Source,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Imported:
        """Take in what `export_to` wrote, in one transaction: all of it or nothing.

        Ids, order, digests, journal and moves stay what they are. Threads that are
        there with the same content are passed over; with other content they are a
        `Conflict`. With ``dry_run`` the archive is only read and checked.
        """
        return run(taking_in(self._context, source, dry_run, progress))

    def backup(self, to: str) -> None:
        """A consistent copy in a new file, made while others go on writing."""
        return run(self._context.backend.backup(to))

    def changes(
        self, after: int = 0, *, limit: int = 1000, timeout: float = 0.0
    ) -> Page[Change]:
        """What happened behind a cursor, in commit order; waits if there is nothing.

        Go on with the page's cursor, which is set even when the page is empty.
        """
        return run(listing.changes(self._context, after, limit, timeout))


class AsyncStore:
    """As `Store`, awaited; made by `holdfast.open_async`."""

    def __init__(self, passage: Passage) -> None:
        self._passage = passage
        self._context = passage.context
        self.agents = AsyncAgents(passage)
        self.conversations = AsyncConversations(passage)
        self.documents = AsyncDocuments(passage)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        try:
            await self.agents.close()
        finally:
            await self._passage.close()

    def using(self, connection: object) -> AsyncStore:
        return AsyncStore(Passage(over(self._context, connection), Worker()))

    # --- threads ----------------------------------------------------------------------

    def thread(
        self,
        id: str,  # noqa: A002 - public name
        *,
        kind: str = "thread",
        owner: str | None = None,
        agent: str | None = None,
        metadata: dict[str, object] | None = None,
    ) -> AsyncThread:
        return AsyncThread(self._passage, id, start(kind, owner, agent, metadata))

    async def threads(
        self,
        *,
        kind: str | None = None,
        owner: str | None = None,
        agent: str | None = None,
        prefix: str | None = None,
        metadata: dict[str, object] | None = None,
        limit: int | None = 100,
        after: int | None = None,
    ) -> Page[ThreadRecord]:
        query = ThreadsQuery(
            kind=kind,
            owner=owner,
            agent=agent,
            prefix=prefix,
            metadata=metadata,
            limit=limit,
            after=after,
        )
        return await self._passage.run(listing.threads(self._context, query))

    async def delete(
        self,
        *threads: str,
        owner: str | None = None,
        agent: str | None = None,
        kind: str | None = None,
        prefix: str | None = None,
    ) -> int:
        operation = removal.delete_matching(
            self._context, threads, owner=owner, agent=agent, kind=kind, prefix=prefix
        )
        return await self._passage.run(operation)

    # --- checkpoints ------------------------------------------------------------------

    async def get(self, id: str) -> Checkpoint:  # noqa: A002 - public name
        return await self._passage.run(listing.get(self._context, id))

    @overload
    async def load(self, checkpoint: Checkpoint | str, *, type: None = None) -> Any: ...
    @overload
    async def load(self, checkpoint: Checkpoint | str, *, type: type[T]) -> T: ...
    async def load(self, checkpoint: Checkpoint | str, *, type: Any = None) -> Any:  # noqa: A002
        state = await self._passage.run(listing.load(self._context, checkpoint))
        return loading.converted(state, type)

    async def last_messages(self, checkpoints: Sequence[Checkpoint]) -> list[Any]:
        operation = glancing.last_messages(self._context, checkpoints)
        return await self._passage.run(operation)

    async def search(
        self,
        query: str,
        *,
        agent: str | None = None,
        owner: str | None = None,
        conversation: str | None = None,
        archived: bool | None = None,
        limit: int | None = 20,
        after: int | None = None,
        progress: Progress | None = None,
    ) -> Page[Match]:
        wanted = SearchQuery(
            text=query,
            kinds=MESSAGE_KINDS,
            agent=agent,
            owner=owner,
            conversation=conversation,
            archived=archived,
            limit=limit,
            after=after,
        )
        operation = searching.search(self._context, wanted, progress)
        return await self._passage.run(operation)

    # --- upkeep -----------------------------------------------------------------------

    async def prune(self, policy: Retention, *, dry_run: bool = False) -> Pruned:
        return await self._passage.run(
            upkeep.prune(self._context, policy, dry_run=dry_run)
        )

    async def compact(self) -> None:
        return await self._passage.run(index.compact(self._context))

    async def stats(self) -> Statistics:
        return await self._passage.run(statistics.statistics(self._context))

    async def heaviest(self, limit: int | None = 10) -> tuple[Heavy, ...]:
        return await self._passage.run(sizes.heaviest(self._context, limit))

    async def verify(
        self, *, quick: bool = False, progress: Progress | None = None
    ) -> Verification:
        operation = checking.verify(self._context, quick=quick, progress=progress)
        return await self._passage.run(operation)

    async def salvage(self, to: str) -> Salvaged:
        operation = salvaging.salvage(self._context, lambda: open_new(to))
        return await self._passage.run(operation)

    async def import_from(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002 - public name
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Report:
        operation = importing(self._context, path, format, dry_run, progress)
        return await self._passage.run(operation)

    async def copy_to(
        self, other: AsyncStore, *, progress: Progress | None = None
    ) -> Copied:
        ours, theirs = self._context, other._context
        if ours.backend.blocking is not theirs.backend.blocking:
            raise Unsupported(
                "one of the stores is awaited and the other is not; copy with"
                " holdfast.open()"
            )
        return await self._passage.run(copy.copy(ours, theirs, progress))

    async def export_to(
        self,
        to: Target,
        *,
        threads: Iterable[str] | None = None,
        since: datetime | None = None,
        progress: Progress | None = None,
    ) -> Contents:
        operation = exporting(self._context, to, threads, since, progress)
        return await self._passage.run(operation)

    async def export_lines(
        self,
        to: Target,
        *,
        threads: Iterable[str] | None = None,
        since: datetime | None = None,
        shown: Shown = "state",
        heads: bool = False,
        redact: Iterable[str] = (),
        progress: Progress | None = None,
    ) -> int:
        wanted = (threads, since, shown, heads, redact)
        return await self._passage.run(telling(self._context, to, wanted, progress))

    async def import_archive(
        self,
        source: Source,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Imported:
        operation = taking_in(self._context, source, dry_run, progress)
        return await self._passage.run(operation)

    async def backup(self, to: str) -> None:
        return await self._passage.run(self._context.backend.backup(to))

    async def changes(
        self, after: int = 0, *, limit: int = 1000, timeout: float = 0.0
    ) -> Page[Change]:
        if not self._context.backend.blocking:
            return await listing.changes(self._context, after, limit, timeout)
        import asyncio  # noqa: PLC0415 - the blocking door does not need it

        # Waiting here and not in a worker: watchers must not use up its threads.
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            operation = listing.changes(self._context, after, limit, 0.0)
            page = await self._passage.run(operation)
            remaining = deadline - loop.time()
            if page or remaining <= 0:
                return page
            await asyncio.sleep(min(POLL_SECONDS, remaining))
