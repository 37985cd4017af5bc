"""The two doors to a store: `Store` blocks, `AsyncStore` is awaited."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self, TypeVar, overload

from holdfast._agents import Agents, AsyncAgents
from holdfast._backend import Pruned, Start, run
from holdfast._conversations import AsyncConversations, Conversations
from holdfast._documents import AsyncDocuments, Documents
from holdfast._opening import open_new
from holdfast._operations import checking, counting, listing, loading, salvaging, upkeep
from holdfast._operations.checking import Verification
from holdfast._operations.context import Context
from holdfast._operations.counting import Statistics
from holdfast._operations.listing import ThreadsQuery
from holdfast._operations.salvaging import Salvaged
from holdfast._records import (
    Change,
    Checkpoint,
    Page,
    ThreadRecord,
    checked_name,
    encode_metadata,
)
from holdfast._thread import AsyncThread, Thread
from holdfast._worker import Passage
from holdfast.retention import Retention

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
        operation = upkeep.delete_matching(
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

    # --- upkeep -----------------------------------------------------------------------

    def prune(self, policy: Retention, *, dry_run: bool = False) -> Pruned:
        """Remove what a policy does not keep, in one transaction.

        With ``dry_run`` nothing is removed, and the counts are what would be.
        """
        return run(upkeep.prune(self._context, policy, dry_run=dry_run))

    def compact(self) -> None:
        """Give the space of what was removed back to the file system."""
        return run(self._context.backend.compact())

    def stats(self) -> Statistics:
        """Counts and sizes of the whole store."""
        return run(counting.statistics(self._context))

    def verify(self) -> Verification:
        """Check every checksum, digest and reference in the store."""
        return run(checking.verify(self._context))

    def salvage(self, to: str) -> Salvaged:
        """Copy everything that can still be read into a new store."""
        return run(salvaging.salvage(self._context, lambda: open_new(to)))

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
        operation = upkeep.delete_matching(
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

    # --- upkeep -----------------------------------------------------------------------

    async def prune(self, policy: Retention, *, dry_run: bool = False) -> Pruned:
        return await self._passage.run(
            upkeep.prune(self._context, policy, dry_run=dry_run)
        )

    async def compact(self) -> None:
        return await self._passage.run(self._context.backend.compact())

    async def stats(self) -> Statistics:
        return await self._passage.run(counting.statistics(self._context))

    async def verify(self) -> Verification:
        return await self._passage.run(checking.verify(self._context))

    async def salvage(self, to: str) -> Salvaged:
        operation = salvaging.salvage(self._context, lambda: open_new(to))
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
