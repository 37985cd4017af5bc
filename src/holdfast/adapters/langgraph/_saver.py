"""The checkpointer: LangGraph's methods, one line each, blocking and awaited."""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)

from holdfast._api.options import OpenOptions
from holdfast._api.store import AsyncStore, Store
from holdfast._engine.context import Context
from holdfast.adapters.langgraph import (
    _delete,
    _delta_channels,
    _get,
    _shapes,
)
from holdfast.adapters.langgraph import (
    _list as _listing,
)
from holdfast.adapters.langgraph import (
    _put as _putting,
)
from holdfast.adapters.langgraph._runner import (
    Address,
    AnyStore,
    Runner,
    Scoped,
    opened,
)
from holdfast.adapters.langgraph._task_writes import call_of
from holdfast.adapters.langgraph._types import Types

if TYPE_CHECKING:
    from holdfast.importers import Progress, Report


class HoldfastSaver(BaseCheckpointSaver[Any]):
    """A checkpointer for ``graph.compile(checkpointer=...)``.

    Opened from an address, with the options of `holdfast.open`, or over a store that is
    open already; from asyncio also as ``async with HoldfastSaver.from_conn_string()``.
    Every method is there blocking and awaited, for any number of threads and tasks.

    ``allow`` are classes of your own that channels hold: enums, dataclasses, pydantic
    models, named tuples, with whatever their fields are declared to hold. Messages and
    the types of LangGraph and of Python need no permission. Anything else is refused,
    when it is saved and when it is loaded, and nothing stored is ever imported.

    A run whose thread was saved to by another run raises `holdfast.Conflict`.
    """

    def __init__(
        self,
        store: Address | AnyStore,
        *,
        allow: Iterable[type] = (),
        **options: Unpack[OpenOptions],
    ) -> None:
        super().__init__()
        self._types = Types(allow)
        self._owned = None
        if not isinstance(store, Store | AsyncStore):
            store = self._owned = opened(store, options)
        self._runner = Runner(store)

    @classmethod
    def from_conn_string(
        cls,
        address: Address,
        *,
        allow: Iterable[type] = (),
        **options: Unpack[OpenOptions],
    ) -> Scoped[Self]:
        """A saver for ``with`` or ``async with``, closed at the end of it."""
        return Scoped(lambda store: cls(store, allow=allow), address, options)

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
        """Close the store if it was opened here."""
        if self._owned is not None:
            self._owned.close()

    def setup(self) -> None:
        """Do nothing: a store is ready once it is open."""

    # --- reading ----------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the one saved last in its thread."""
        return self._runner.run(_get.get_tuple, self._types, config)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`, awaited."""
        return await self._runner.arun(_get.get_tuple, self._types, config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread, or of all, what was saved last first.

        ``filter`` compares metadata, by any key; ``before`` continues behind a
        checkpoint. Nothing is held open meanwhile: the loop may call what it likes.
        """
        return self._runner.each(self._list(config, filter, before, limit))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`, awaited."""
        items = self._list(config, filter, before, limit)
        async for item in self._runner.aeach(items):
            yield item

    def _list(
        self,
        config: RunnableConfig | None,
        wanted: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> AsyncIterator[CheckpointTuple]:
        asked = _listing.Asked(config=config, filter=wanted, before=before, limit=limit)
        return _listing.tuples(self._runner.context, self._types, asked)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> dict[str, Any]:
        """What delta channels begin with before a checkpoint, and were written since.

        Raises `NotFound` if checkpoints were removed that they are made of.
        """
        return self._runner.run(_delta_channels.history, self._types, config, channels)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> dict[str, Any]:
        """As `get_delta_channel_history`, awaited."""
        return await self._runner.arun(
            _delta_channels.history, self._types, config, channels
        )

    # --- writing ----------------------------------------------------------------------

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint as the newest of its thread, durable when this returns.

        Raises `Conflict` if another run has saved to the thread since this one read
        it, or if the thread was deleted.
        """
        return self._runner.run(self._put, config, checkpoint, metadata, new_versions)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`, awaited."""
        return await self._runner.arun(
            self._put, config, checkpoint, metadata, new_versions
        )

    async def _put(
        self,
        context: Context,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        asked = _putting.putting(
            self._types, config, checkpoint, metadata, new_versions
        )
        await _putting.put(context, asked)
        return asked.place.config(asked.id)

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Keep what a task wrote on a checkpoint, which need not be saved yet."""
        self._runner.run(self._put_writes, config, writes, task_id, task_path)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """As `put_writes`, awaited."""
        await self._runner.arun(self._put_writes, config, writes, task_id, task_path)

    async def _put_writes(
        self,
        context: Context,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> None:
        call = call_of(self._types, config, writes, (task_id, task_path))
        await _putting.put_writes(context, call)

    # --- removing and copying ---------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with its subgraphs; runs still at work on it are refused."""
        self._runner.run(_delete.delete_thread, str(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`, awaited."""
        await self._runner.arun(_delete.delete_thread, str(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove what runs saved, but for what delta channels still need."""
        self._runner.run(_delete.delete_for_runs, set(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`, awaited."""
        await self._runner.arun(_delete.delete_for_runs, set(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with its subgraphs and writes; ids stay what they are."""
        names = str(source_thread_id), str(target_thread_id)
        self._runner.run(_delete.copy_thread, *names)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`, awaited."""
        names = str(source_thread_id), str(target_thread_id)
        await self._runner.arun(_delete.copy_thread, *names)

    def prune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        """Remove all but the newest checkpoint of each namespace, or all.

        Kept are also those that delta channels are made of, and those with a label or
        a tag. The strategy is ``"keep_latest"`` or ``"delete"``.
        """
        names = [str(name) for name in thread_ids]
        self._runner.run(_delete.prune, names, strategy)

    async def aprune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        """As `prune`, awaited."""
        names = [str(name) for name in thread_ids]
        await self._runner.arun(_delete.prune, names, strategy)

    def import_from(
        self,
        source: Address,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Report:
        """Take over what LangGraph's own savers keep, in SQLite or PostgreSQL.

        ``source`` is the path of a SQLite file or a ``postgresql://`` address, and is
        never changed. All threads, namespaces, checkpoints and writes come with their
        ids; a second import adds what is new. With ``dry_run`` nothing is written.
        """
        return self._runner.run(self._import_from, source, dry_run, progress)

    async def aimport_from(
        self,
        source: Address,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Report:
        """As `import_from`, awaited."""
        return await self._runner.arun(self._import_from, source, dry_run, progress)

    async def _import_from(
        self,
        context: Context,
        source: Address,
        dry_run: bool,
        progress: Progress | None,
    ) -> Report:
        # Imported here: few programs ever need it.
        from holdfast.adapters.langgraph import _import  # noqa: PLC0415

        return await _import.import_from(
            context,
            self._types,
            source,
            dry_run=dry_run,
            progress=progress,
        )

    # --- for LangGraph ----------------------------------------------------------------

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The version after another: a number, or text where it was text before."""
        del channel
        if isinstance(current, str):
            number = int(current.partition(".")[0]) + 1
            return f"{number:032}.{random.random():016}"  # noqa: S311 - no secret
        return 1 if current is None else current + 1

    def with_allowlist(
        self, extra_allowlist: Collection[tuple[str, ...]]
    ) -> HoldfastSaver:
        """The same saver, allowing the classes a graph's state is declared with."""
        types = self._types.allowing(_found(extra_allowlist))
        if types is self._types:
            return self
        other = copy.copy(self)
        vars(other)["_types"] = types
        return other


def _found(names: Collection[tuple[str, ...]]) -> Iterator[type]:
    """Classes that are loaded, by their modules and names."""
    for module, *path in names:
        found: Any = sys.modules.get(module)
        for name in path:
            found = getattr(found, name, None)
        if isinstance(found, type) and _shapes.is_allowable(found):
            yield found
