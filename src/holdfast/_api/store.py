"""A store for the sync API, `Store`, and for the async API, `AsyncStore`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from holdfast._api import agents as agent_api
from holdfast._api import conversations as conversation_api
from holdfast._api import documents as document_api
from holdfast._api import plugins, transfer
from holdfast._api import streams as stream_api
from holdfast._api import transaction as transaction_api
from holdfast._api.keywords import (
    StartOptions,
    StreamOptions,
    ThreadsOptions,
    search_query,
    start,
    stream_start,
    threads_query,
)
from holdfast._api.options import open_new, over
from holdfast._api.plugins import ImportOptions
from holdfast._api.runner import (
    AsyncRunner,
    Runner,
    new_async_runner,
    new_runner,
    scope_of,
)
from holdfast._api.thread import AsyncThread, Thread
from holdfast._api.wrong_api import AsyncOnly, SyncOnly
from holdfast._engine.context import Context
from holdfast._engine.records import agent_snapshots, last_messages
from holdfast._engine.search import index
from holdfast._engine.search import query as search
from holdfast._engine.threads import listing, load, removal
from holdfast._engine.upkeep import (
    copy,
    erase,
    erasure,
    prune,
    prune_plans,
    salvage,
    seal,
    statistics,
    verify,
)
from holdfast._port import Pruned
from holdfast._values import caller_key
from holdfast._values.arguments import checked_instance, checked_path, checked_seconds
from holdfast._values.caller_key import CallerKey
from holdfast._values.records import (
    Change,
    Checkpoint,
    Page,
    Progress,
    ThreadRecord,
)
from holdfast.errors import Unsupported
from holdfast.retention import Retention

if TYPE_CHECKING:  # a leaf, and modules that `holdfast log` need not load
    from holdfast._api.agents import Agents, AsyncAgents
    from holdfast._api.autosave import AsyncAutoCheckpoints, AutoCheckpoints
    from holdfast._api.conversations import AsyncConversations, Conversations
    from holdfast._api.documents import AsyncDocuments, Documents
    from holdfast._api.plugins import Report
    from holdfast._api.streams import AsyncStream, Stream
    from holdfast._api.transaction import AsyncTransaction, Transaction
    from holdfast._api.transfer import LinesOptions
    from holdfast._engine.search.query import Match, SearchOptions
    from holdfast._engine.upkeep.copy import Copied
    from holdfast._engine.upkeep.erasure import Erasure
    from holdfast._engine.upkeep.salvage import Salvaged
    from holdfast._engine.upkeep.statistics import Heavy, Statistics
    from holdfast._engine.upkeep.verify import Verification
    from holdfast.archive import Contents, Imported, Source, Target

T = TypeVar("T")


async def backup(context: Context, to: str) -> None:
    """Copy the store into a new file."""
    await context.backend.backup(checked_path(to, "to"))


async def rotate_key(context: Context, key: CallerKey) -> None:
    """Wrap the store's key with another key of the caller."""
    if context.keys is None:
        raise caller_key.not_encrypted()
    await context.keys.rotate(caller_key.checked_key(key))


def shown(kind: str, runner: Runner | AsyncRunner) -> str:
    """A store for people: where it is, and whether it is open."""
    state = "closed" if runner.is_closed else "open"
    return f"<{kind} {runner.context.address or 'of unknown address'}, {state}>"


class Store(SyncOnly):
    """Keeps threads of checkpoints; made by `holdfast.open`.

    Usable from several threads at once, and after a fork in the child as well.
    ``runner`` starts operations; adapters use it for their own.
    """

    def __init__(self, context: Context) -> None:
        self.runner = new_runner(context)
        self._autosaves: set[AutoCheckpoints] = set()

    # Made when they are used: a command line that only looks does not load them.

    @cached_property
    def agents(self) -> Agents:
        """The agents of the store, and their checkpoints."""
        return agent_api.Agents(self.runner, self._autosaves)

    @cached_property
    def conversations(self) -> Conversations:
        """The conversations of the store."""
        return conversation_api.Conversations(self.runner)

    @cached_property
    def documents(self) -> Documents:
        """The documents of the store."""
        return document_api.Documents(self.runner)

    def __repr__(self) -> str:
        return shown("Store", self.runner)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file; closing twice is fine, everything else raises `Closed`."""
        try:
            if self._autosaves:
                self.agents.close()
        finally:
            self.runner.close()

    def using(self, connection: object) -> Store:
        """The same store over your own connection to PostgreSQL.

        Its saves are part of your transaction, like your own writes in it.
        """
        return Store(over(self.runner.context, connection))

    def scope(self, name: str) -> Store:
        """A store that sees and changes nothing but what was saved through it.

        For the tenants of a program: names, ids, listings, searches, statistics and
        the feed are those of the scope. Closing it ends the use of this handle;
        closing the store ends that of all its scopes. A scope can have scopes.
        """
        return Store(scope_of(self.runner.context, name))

    # --- threads ----------------------------------------------------------------------

    def thread(self, id: str, **options: Unpack[StartOptions]) -> Thread:
        """A handle on a thread, which need not exist.

        A new thread begins with the options: ``kind`` (``"thread"``), ``owner`` (a
        user), ``agent`` (the agent that it works for) and ``metadata`` (a dict).
        """
        return Thread(self.runner, id, start(options))

    def stream(self, name: str, **options: Unpack[StreamOptions]) -> Stream:
        """A handle on a log of events, which need not exist.

        A new stream begins with the options: ``owner``, ``agent`` and ``metadata``, as
        those of a thread. With ``anew``, one that was deleted begins again with the
        next event; otherwise late writers are refused.
        """
        return stream_api.Stream(self.runner, name, stream_start(options))

    def transaction(self) -> Transaction:
        """Changes of several threads, all or none: ``with store.transaction() as tx``.

        ``tx.thread(id)`` plans one change of a thread; its ``save``, ``extend``,
        ``amend`` and ``record_all`` take what those of a `Thread` do, and ``check``
        only expects a head. ``tx.stream(name).append`` appends an event. Everything is
        written when the block ends, and nothing if it raises. Reads inside the block
        see the store without the changes: to depend on what was read, pass its
        checkpoint as ``expect``. If one head is not the expected one, `Conflict` names
        the thread and nothing is changed.
        """
        return transaction_api.Transaction(self.runner)

    def threads(
        self,
        **options: Unpack[ThreadsOptions],
    ) -> Page[ThreadRecord]:
        """The threads that were saved to, last used first. Options:

        - ``kind``, ``owner``, ``agent`` and ``prefix`` (of the name) select threads;
          pins of agents' checkpoints are listed with ``kind="pin"`` only.
        - ``metadata`` selects the threads that have all its items.
        - ``limit`` is the size of a page, 100, and ``after`` the cursor of the page
          before.

        A page takes the same time however many threads there are. With ``metadata``
        that few threads have, all are looked at.
        """
        return self.runner.run(listing.threads, threads_query(options))

    def delete(
        self,
        *threads: str,
        owner: str | None = None,
        agent: str | None = None,
        kind: str | None = None,
        prefix: str | None = None,
    ) -> int:
        """Delete threads by name, or all that match the filters; returns how many."""
        return self.runner.run(
            removal.delete_matching,
            threads,
            owner=owner,
            agent=agent,
            kind=kind,
            prefix=prefix,
        )

    def erase(
        self,
        *,
        owner: str | None = None,
        thread: str | None = None,
        agent: str | None = None,
        forks: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Erasure:
        """Remove all of an owner, an agent or a thread, so that nothing of it is left.

        Not in rows, journals, checkpoints of agents, the search index, logs or unused
        space of the store. A digest of each name stays, by which late writers are
        refused for good; ``expect=None`` begins a name again. In an encrypted store the
        keys of the owner are destroyed as well.

        A thread that stays and shares history with it is a `Conflict` (code
        ``in_use``), before anything is removed; ``forks=True`` erases such threads too.
        With ``dry_run`` nothing is removed, and the receipt says what would be. If it
        is interrupted, the next opening of the store for writing finishes it.
        ``progress`` is called with how many groups of threads are done, of how many.
        """
        request = erasure.ErasureRequest(
            owner=owner, thread=thread, agent=agent, forks=forks
        )
        return self.runner.run(erase.erase, request, dry_run=dry_run, progress=progress)

    def verify_receipt(self, receipt: Erasure | str) -> bool:
        """True if this encrypted store has signed the receipt of an `erase`.

        ``receipt`` is the object, or the text of its `to_json`.
        """
        return self.runner.run(erasure.verify_receipt, receipt)

    # --- checkpoints ------------------------------------------------------------------

    def get(self, id: str) -> Checkpoint:
        """The checkpoint with an id, or with a unique beginning of one."""
        return self.runner.run(listing.get, id)

    @overload
    def load(self, checkpoint: Checkpoint | str, *, type: None = None) -> Any: ...
    @overload
    def load(self, checkpoint: Checkpoint | str, *, type: type[T]) -> T: ...
    def load(self, checkpoint: Checkpoint | str, *, type: Any = None) -> Any:
        """The state of a checkpoint of any thread.

        The state of an agent's checkpoint has the states of the ``agent`` and, by id,
        of its ``conversations``.
        """
        state = self.runner.run(agent_snapshots.load_any, checkpoint)
        return load.converted(state, type)

    def last_messages(self, checkpoints: Sequence[Checkpoint]) -> list[Any]:
        """The last message of each checkpoint, for showing a history.

        It is the last element of the list ``messages`` of a state, ``None`` if there is
        none. A page of history costs one request, however long the lists are.
        """
        return self.runner.run(last_messages.last_messages, checkpoints)

    def search(
        self,
        query: str,
        *,
        progress: Progress | None = None,
        **options: Unpack[SearchOptions],
    ) -> Page[Match]:
        """The messages that contain all words of a query in any case, newest first.

        A word may be part of a longer one; ``"in quotes"`` several words must stand so
        in the message. Conversations and all other threads with a list of ``messages``,
        of any kind, come in the order in which they were last used, the messages of
        each from its last on. Options:

        - ``per="conversation"`` gives only the last such message of each thread, so
          that ``limit`` counts conversations and not messages.
        - ``agent``, ``owner``, ``conversation`` and ``archived`` select threads.
        - ``limit`` is the size of a page, 20, and ``after`` the cursor of the page
          before; a thread that is used in the meantime moves to the front.
        - ``progress``: the first search makes an index and later ones bring it up to
          date; it is called with how many conversations are done, of how many (for an
          `AsyncStore` in another thread).
        """
        wanted = search_query(query, options, kind=None)
        return self.runner.run(search.search, wanted, progress)

    # --- upkeep -----------------------------------------------------------------------

    def prune(
        self,
        policy: Retention,
        *,
        thread: str | None = None,
        agent: str | None = None,
        owner: str | None = None,
        prefix: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Pruned:
        """Remove what a policy does not keep.

        ``thread``, ``agent`` (whom it works for), ``owner`` and ``prefix`` (of the
        name) limit it to the threads that match all of them: what was saved in other
        threads stays, and so do the checkpoints at which they were forked. With
        ``dry_run`` nothing is removed; the counts say what would be.

        It takes one short transaction after the other, so that others can write in
        between. If it is interrupted, what is done stays done, the store is whole, and
        the next prune goes on. ``progress`` is called with how many threads with their
        forks are done, of how many that may need it.
        """
        only = prune_plans.PruneRange(
            thread=thread, agent=agent, owner=owner, prefix=prefix
        )
        return self.runner.run(
            prune.prune, policy, only, dry_run=dry_run, progress=progress
        )

    def compact(self) -> None:
        """Join what is stored in small pieces, and give unused space back."""
        return self.runner.run(index.compact)

    def stats(self) -> Statistics:
        """Counts and sizes of the whole store."""
        return self.runner.run(statistics.statistics)

    def heaviest(self, limit: int | None = 10) -> tuple[Heavy, ...]:
        """The groups of threads with shared history that take the most space.

        Heaviest first; all of them with ``limit=None``.
        """
        return self.runner.run(statistics.heaviest, limit)

    def verify(
        self,
        *,
        quick: bool = False,
        seal: str | None = None,
        progress: Progress | None = None,
    ) -> Verification:
        """Check every checksum, digest and reference in the store.

        With ``quick``, only the checks of the storage technology itself. With a
        ``seal``, also whether the store still holds what it held when `seal` made it.
        ``progress`` is called with how many checkpoints are done, of how many.
        """
        return self.runner.run(verify.verify, quick=quick, seal=seal, progress=progress)

    def seal(self) -> str:
        """A text to keep elsewhere, with which `verify` recognises an older store.

        It stays valid while others go on saving. Make a new one after deleting or
        pruning: what was sealed and is gone counts as a problem.
        """
        return self.runner.run(seal.seal)

    def rotate_key(self, key: CallerKey) -> None:
        """Let another key open an encrypted store from now on, and the old one no more.

        It takes one transaction, however large the store is: only the store's own key
        is wrapped again. A copy of the store from before still opens with the old key.
        """
        self.runner.run(rotate_key, key)

    def salvage(self, to: str) -> Salvaged:
        """Copy everything that can still be read into a new store."""
        like = self.runner.context
        return self.runner.run(salvage.salvage, lambda: open_new(to, like))

    def import_from(
        self, path: str | os.PathLike[str], **options: Unpack[ImportOptions]
    ) -> Report:
        """Put what a foreign file or folder holds into this store.

        The source is never changed, damage in it is reported and the rest imported, and
        a second import adds nothing. Options:

        - ``format`` is one of `holdfast.importers.formats`; by default it is recognised
          from the files.
        - ``dry_run=True`` writes nothing.
        - ``progress`` is called with how many checkpoints are done, of how many.
        """
        return self.runner.run(plugins.import_into, path, **options)

    def copy_to(
        self, other: Store, *, update: bool = False, progress: Progress | None = None
    ) -> Copied:
        """Copy everything into an empty store of any kind.

        Ids, order, digests and journal stay what they are. A copy that was interrupted
        can be repeated and continues; ``progress`` is called with how many families are
        done, of how many.

        With ``update=True`` an earlier copy is brought up to date: what has changed
        here since then is copied again, and what is gone here goes there. A copy to
        which others have saved meanwhile is refused.
        """
        other_context = checked_instance(other, Store, "other").runner.context
        return self.runner.run(copy.copy, other_context, progress, update=update)

    def export_to(
        self,
        to: Target,
        *,
        threads: Iterable[str] | None = None,
        owner: str | None = None,
        since: datetime | None = None,
        progress: Progress | None = None,
    ) -> Contents:
        """Write a portable archive to a new file, or to one open for writing bytes.

        Equal content gives equal bytes, with every backend. ``threads``, and those of
        ``owner``, are exported with all that share history with them; with ``since``,
        only the heads and what was saved since then. ``progress`` is called with how
        many checkpoints and segments are done, of how many.
        """
        return self.runner.run(
            transfer.export_archive, to, threads, owner, since, progress
        )

    def export_lines(
        self,
        to: Target,
        *,
        progress: Progress | None = None,
        **options: Unpack[LinesOptions],
    ) -> int:
        """Write checkpoints as JSON Lines, thread by thread; returns how many.

        Each line holds a checkpoint and its state. Options:

        - ``threads``, ``owner`` and ``since`` select as in `export_to`. With ``owner``
          a line about each thread, with its metadata and its journal, comes before its
          checkpoints: everything that is held about a person.
        - ``shown="messages"`` writes the messages instead of the whole state.
        - ``heads=True`` writes one line for each thread.
        - ``redact``: paths whose values are left out, such as ``messages.*.content``.
        """
        return self.runner.run(transfer.export_lines, to, progress, **options)

    def import_archive(
        self,
        source: Source,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Imported:
        """Import what `export_to` wrote, in one transaction: all of it or nothing.

        Ids, order, digests, journal and moves stay what they are. A thread that exists
        with the same content is skipped; with other content it is a `Conflict`. With
        ``dry_run`` the archive is only read and checked.
        """
        return self.runner.run(
            transfer.import_archive, source, dry_run=dry_run, progress=progress
        )

    def backup(self, to: str) -> None:
        """A consistent copy in a new file, made while other writers continue."""
        return self.runner.run(backup, to)

    def changes(
        self, after: int = 0, *, limit: int = 1000, timeout: float = 0.0
    ) -> Page[Change]:
        """The changes after a cursor, in commit order; waits if there are none.

        Continue with the page's cursor, which is set even when the page is empty.
        """
        timeout = checked_seconds(timeout, "timeout")
        return self.runner.run(listing.changes, after, limit, timeout)


class AsyncStore(AsyncOnly):
    """Like `Store`, awaited; made by `holdfast.open_async`."""

    def __init__(self, context: Context, runner: AsyncRunner | None = None) -> None:
        self.runner = runner or new_async_runner(context)
        self._autosaves: set[AsyncAutoCheckpoints] = set()

    @cached_property
    def agents(self) -> AsyncAgents:
        return agent_api.AsyncAgents(self.runner, self._autosaves)

    @cached_property
    def conversations(self) -> AsyncConversations:
        return conversation_api.AsyncConversations(self.runner)

    @cached_property
    def documents(self) -> AsyncDocuments:
        return document_api.AsyncDocuments(self.runner)

    def __repr__(self) -> str:
        return shown("AsyncStore", self.runner)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        try:
            if self._autosaves:
                await self.agents.close()
        finally:
            await self.runner.close()

    def using(self, connection: object) -> AsyncStore:
        return AsyncStore(over(self.runner.context, connection))

    def scope(self, name: str) -> AsyncStore:
        runner = self.runner.scoped(name)
        return AsyncStore(runner.context, runner)

    # --- threads ----------------------------------------------------------------------

    def thread(self, id: str, **options: Unpack[StartOptions]) -> AsyncThread:
        return AsyncThread(self.runner, id, start(options))

    def stream(self, name: str, **options: Unpack[StreamOptions]) -> AsyncStream:
        return stream_api.AsyncStream(self.runner, name, stream_start(options))

    def transaction(self) -> AsyncTransaction:
        return transaction_api.AsyncTransaction(self.runner)

    async def threads(
        self,
        **options: Unpack[ThreadsOptions],
    ) -> Page[ThreadRecord]:
        return await self.runner.run(listing.threads, threads_query(options))

    async def delete(
        self,
        *threads: str,
        owner: str | None = None,
        agent: str | None = None,
        kind: str | None = None,
        prefix: str | None = None,
    ) -> int:
        return await self.runner.run(
            removal.delete_matching,
            threads,
            owner=owner,
            agent=agent,
            kind=kind,
            prefix=prefix,
        )

    async def erase(
        self,
        *,
        owner: str | None = None,
        thread: str | None = None,
        agent: str | None = None,
        forks: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Erasure:
        request = erasure.ErasureRequest(
            owner=owner, thread=thread, agent=agent, forks=forks
        )
        return await self.runner.run(
            erase.erase, request, dry_run=dry_run, progress=progress
        )

    async def verify_receipt(self, receipt: Erasure | str) -> bool:
        return await self.runner.run(erasure.verify_receipt, receipt)

    # --- checkpoints ------------------------------------------------------------------

    async def get(self, id: str) -> Checkpoint:
        return await self.runner.run(listing.get, id)

    @overload
    async def load(self, checkpoint: Checkpoint | str, *, type: None = None) -> Any: ...
    @overload
    async def load(self, checkpoint: Checkpoint | str, *, type: type[T]) -> T: ...
    async def load(self, checkpoint: Checkpoint | str, *, type: Any = None) -> Any:
        state = await self.runner.run(agent_snapshots.load_any, checkpoint)
        return load.converted(state, type)

    async def last_messages(self, checkpoints: Sequence[Checkpoint]) -> list[Any]:
        return await self.runner.run(last_messages.last_messages, checkpoints)

    async def search(
        self,
        query: str,
        *,
        progress: Progress | None = None,
        **options: Unpack[SearchOptions],
    ) -> Page[Match]:
        wanted = search_query(query, options, kind=None)
        return await self.runner.run(search.search, wanted, progress)

    # --- upkeep -----------------------------------------------------------------------

    async def prune(
        self,
        policy: Retention,
        *,
        thread: str | None = None,
        agent: str | None = None,
        owner: str | None = None,
        prefix: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Pruned:
        only = prune_plans.PruneRange(
            thread=thread, agent=agent, owner=owner, prefix=prefix
        )
        return await self.runner.run(
            prune.prune, policy, only, dry_run=dry_run, progress=progress
        )

    async def compact(self) -> None:
        return await self.runner.run(index.compact)

    async def stats(self) -> Statistics:
        return await self.runner.run(statistics.statistics)

    async def heaviest(self, limit: int | None = 10) -> tuple[Heavy, ...]:
        return await self.runner.run(statistics.heaviest, limit)

    async def verify(
        self,
        *,
        quick: bool = False,
        seal: str | None = None,
        progress: Progress | None = None,
    ) -> Verification:
        return await self.runner.run(
            verify.verify, quick=quick, seal=seal, progress=progress
        )

    async def seal(self) -> str:
        return await self.runner.run(seal.seal)

    async def rotate_key(self, key: CallerKey) -> None:
        await self.runner.run(rotate_key, key)

    async def salvage(self, to: str) -> Salvaged:
        like = self.runner.context
        return await self.runner.run(salvage.salvage, lambda: open_new(to, like))

    async def import_from(
        self, path: str | os.PathLike[str], **options: Unpack[ImportOptions]
    ) -> Report:
        return await self.runner.run(plugins.import_into, path, **options)

    async def copy_to(
        self,
        other: AsyncStore,
        *,
        update: bool = False,
        progress: Progress | None = None,
    ) -> Copied:
        other_context = checked_instance(other, AsyncStore, "other").runner.context
        blocking = self.runner.context.backend.blocking
        if blocking is not other_context.backend.blocking:
            raise Unsupported(
                "one of the stores is awaited and the other is not; copy with"
                " holdfast.open()"
            )
        return await self.runner.run(copy.copy, other_context, progress, update=update)

    async def export_to(
        self,
        to: Target,
        *,
        threads: Iterable[str] | None = None,
        owner: str | None = None,
        since: datetime | None = None,
        progress: Progress | None = None,
    ) -> Contents:
        return await self.runner.run(
            transfer.export_archive, to, threads, owner, since, progress
        )

    async def export_lines(
        self,
        to: Target,
        *,
        progress: Progress | None = None,
        **options: Unpack[LinesOptions],
    ) -> int:
        return await self.runner.run(transfer.export_lines, to, progress, **options)

    async def import_archive(
        self,
        source: Source,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Imported:
        return await self.runner.run(
            transfer.import_archive, source, dry_run=dry_run, progress=progress
        )

    async def backup(self, to: str) -> None:
        return await self.runner.run(backup, to)

    async def changes(
        self, after: int = 0, *, limit: int = 1000, timeout: float = 0.0
    ) -> Page[Change]:
        timeout = checked_seconds(timeout, "timeout")
        return await self.runner.poll(listing.changes, after, limit, timeout)
