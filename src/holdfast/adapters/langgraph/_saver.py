"""The checkpointer: LangGraph's methods, each sync and async."""

from __future__ import annotations

import asyncio
import copy
import random
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from holdfast.adapters.langgraph import (
    _call_journal,
    _compensation,
    _delete,
    _delta_channels,
    _get,
    _list,
    _put,
)
from holdfast.adapters.langgraph._call_journal import CallJournal
from holdfast.adapters.langgraph._namespace import root_of
from holdfast.adapters.langgraph._runner import Address, AnyStore, Scoped, StoreOwner
from holdfast.adapters.langgraph._runs import Runs
from holdfast.adapters.langgraph._schema import DeclaredTypes, named_classes
from holdfast.adapters.langgraph._serialized import SerializedTypes
from holdfast.adapters.langgraph._types import Types
from holdfast.backends import run as blocking
from holdfast.effects import Compensation, Effect
from holdfast.operations import Context, OpenOptions, Operation

if TYPE_CHECKING:
    from holdfast.importers import Progress, Report


class HoldfastSaver(StoreOwner, BaseCheckpointSaver[Any]):
    """A checkpointer for ``graph.compile(checkpointer=...)``.

    ``store`` is an address, which is opened with the options of `holdfast.open`, or a
    `Store` or `AsyncStore`; see also ``async with HoldfastSaver.from_conn_string()``.
    Every method exists sync and async, for any number of threads and tasks.

    ``allow`` are your own classes that channels hold: enums, dataclasses, pydantic
    models, named tuples. The classes in the type hints of their fields are allowed too.
    Messages, the types of LangGraph, LangChain and Python, and the classes that a graph
    declares need no permission. Other types are refused when they are saved or loaded;
    a stored name is never imported.

    ``serde`` is a serializer of LangGraph's protocol that replaces all this: the values
    of channels and the writes of tasks are stored in its bytes only.

    A run raises `holdfast.Conflict` if another run has saved to its thread.
    """

    def __init__(
        self,
        store: Address | AnyStore,
        *,
        allow: Iterable[type] = (),
        serde: SerializerProtocol | None = None,
        **options: Unpack[OpenOptions],
    ) -> None:
        super().__init__(serde=serde)
        self._is_serialized = serde is not None
        types = SerializedTypes(self.serde, allow) if serde else Types(allow)
        self._declared = DeclaredTypes(types)
        self._take_store(store, options)
        self._runs = Runs()

    @classmethod
    def from_conn_string(
        cls,
        address: Address,
        *,
        allow: Iterable[type] = (),
        serde: SerializerProtocol | None = None,
        **options: Unpack[OpenOptions],
    ) -> Scoped[Self]:
        """A saver for ``with`` or ``async with``, closed at the end of the block."""
        return Scoped(lambda s: cls(s, allow=allow, serde=serde), address, options)

    # --- reading ----------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the newest of its thread."""
        types = self._declared.loaded()
        found = self._runner.run(_get.get_tuple, types, config)
        self._runs.reads(config, found)
        return found

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        types = self._declared.loaded()
        found = await self._runner.arun(_get.get_tuple, types, config)
        self._runs.reads(config, found, asyncio.get_running_loop())
        return found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread, or of all threads, newest first.

        ``filter`` compares metadata by any key; ``before`` continues after a
        checkpoint. No transaction is open during the loop, which may call any method.
        """
        self._runs.reads(config, None)
        query = _list.TupleQuery(config, filter, before, limit)
        return self._runner.each(self._tuples(query))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        self._runs.reads(config, None, asyncio.get_running_loop())
        query = _list.TupleQuery(config, filter, before, limit)
        async for item in self._runner.aeach(self._tuples(query)):
            yield item

    def _tuples(self, query: _list.TupleQuery) -> AsyncIterator[CheckpointTuple]:
        types = self._declared.loaded()
        return _list.tuples(self._runner.context, types, query)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> dict[str, Any]:
        """The last stored values of delta channels before a checkpoint, later writes.

        Raises `NotFound` if a checkpoint that they are computed from was removed.
        """
        types = self._declared.loaded()
        return self._runner.run(_delta_channels.history, types, config, channels)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> dict[str, Any]:
        types = self._declared.loaded()
        return await self._runner.arun(_delta_channels.history, types, config, channels)

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
        with self._runs.saving(config, checkpoint["id"]) as unsaved:
            return self._runner.run(
                _put.put,
                self._types,
                config,
                checkpoint,
                metadata,
                new_versions,
                unsaved,
            )

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        with self._runs.saving(config, checkpoint["id"]) as unsaved:
            return await self._runner.arun(
                _put.put,
                self._types,
                config,
                checkpoint,
                metadata,
                new_versions,
                unsaved,
            )

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Save the writes of a task on a checkpoint, which may be saved later."""
        task = task_id, task_path
        self._runner.run(_put.put_writes, self._types, config, writes, task)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        task = task_id, task_path
        await self._runner.arun(_put.put_writes, self._types, config, writes, task)

    # --- effects ----------------------------------------------------------------------

    def consume(self, config: RunnableConfig, grant: str) -> bool:
        """Use up a permission, such as ``"approval:42"``; true for one caller only.

        It stays used in the thread of a config and all its forks, also after a replay,
        rewind, fork or restore.
        """
        return self._runner.run(_call_journal.consume, root_of(config), grant)

    async def aconsume(self, config: RunnableConfig, grant: str) -> bool:
        return await self._runner.arun(_call_journal.consume, root_of(config), grant)

    def unknown(self, config: RunnableConfig) -> Sequence[Effect]:
        """The calls of `once` in a thread and its forks without a recorded end."""
        return self._runner.run(_call_journal.unknown, root_of(config))

    async def aunknown(self, config: RunnableConfig) -> Sequence[Effect]:
        return await self._runner.arun(_call_journal.unknown, root_of(config))

    def resolve(self, effect: Effect, result: object) -> None:
        """Record the result of a call without a recorded end."""
        self._runner.run(_call_journal.resolve, self._types, effect, result)

    async def aresolve(self, effect: Effect, result: object) -> None:
        await self._runner.arun(_call_journal.resolve, self._types, effect, result)

    def retry(self, effect: Effect) -> None:
        """Record that such a call had no effect, so that it is made again."""
        self._runner.run(_call_journal.retry, effect)

    async def aretry(self, effect: Effect) -> None:
        await self._runner.arun(_call_journal.retry, effect)

    def compensate(
        self, config: RunnableConfig, tools: Iterable[object]
    ) -> Compensation:
        """Undo the effects that the thread's newest checkpoint has left behind.

        Each is undone by the ``undo`` that its tool declares, newest first, and
        journaled before and after. Effects that another fork still has are not undone.
        """

        async def run(operation: Operation[..., Any], *args: Any) -> Any:
            return self._runner.run(operation, *args)

        at_once = _compensation.at_once
        return blocking(_compensation.compensate(run, at_once, root_of(config), tools))

    async def acompensate(
        self, config: RunnableConfig, tools: Iterable[object]
    ) -> Compensation:
        run, awaited = self._runner.arun, _compensation.awaited
        return await _compensation.compensate(run, awaited, root_of(config), tools)

    # --- removing and copying ---------------------------------------------------------

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread with its subgraphs; later saves of its runs are refused."""
        self._runner.run(_delete.delete_thread, thread_id)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._runner.arun(_delete.delete_thread, thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints of runs, except ones that delta channels need."""
        self._runner.run(_delete.delete_for_runs, set(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._runner.arun(_delete.delete_for_runs, set(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with its subgraphs and writes; ids are unchanged."""
        self._runner.run(_delete.copy_thread, source_thread_id, target_thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._runner.arun(_delete.copy_thread, source_thread_id, target_thread_id)

    def prune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        """Remove all but the newest checkpoint of each namespace, or all.

        The strategy ``"keep_latest"`` also keeps checkpoints that delta channels need,
        and those with a label or a tag; ``"delete"`` deletes the threads.
        """
        self._runner.run(_delete.prune, thread_ids, strategy)

    async def aprune(
        self, thread_ids: Sequence[str], *, strategy: str = "keep_latest"
    ) -> None:
        await self._runner.arun(_delete.prune, thread_ids, strategy)

    def import_from(
        self,
        source: Address,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Report:
        """Import the checkpoints of LangGraph's own savers, from SQLite or PostgreSQL.

        ``source`` is the path of a SQLite file or a ``postgresql://`` address, and is
        never changed. All threads, namespaces, checkpoints and writes keep their ids; a
        second import adds new checkpoints. With ``dry_run`` nothing is written.
        """
        return self._runner.run(self._import_from, source, dry_run, progress)

    async def aimport_from(
        self,
        source: Address,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Report:
        return await self._runner.arun(self._import_from, source, dry_run, progress)

    async def _import_from(
        self,
        context: Context,
        source: Address,
        dry_run: bool,
        progress: Progress | None,
    ) -> Report:
        # Imported here, because few programs need it.
        from holdfast.adapters.langgraph import _import  # noqa: PLC0415

        return await _import.import_from(
            context,
            self._types,
            source,
            dry_run=dry_run,
            progress=progress,
        )

    # --- for LangGraph ----------------------------------------------------------------

    @property
    def _types(self) -> Types:
        return self._declared.saved

    @property
    def call_journal(self) -> CallJournal:
        """The journal in which `once` records calls."""
        return CallJournal(self._runner, self._types, self._runs)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The version after ``current``: a number, or a text if that is a text."""
        del channel
        if isinstance(current, str):
            number = int(current.partition(".")[0]) + 1
            return f"{number:032}.{random.random():016}"  # noqa: S311 - no secret
        return 1 if current is None else current + 1

    def with_allowlist(
        self, extra_allowlist: Collection[tuple[str, ...]]
    ) -> HoldfastSaver:
        """A saver over the same store that also allows these classes of a state."""
        if self._is_serialized:
            return self._with_serializer(extra_allowlist)
        given = self._declared.given
        types = given.allowing(named_classes(extra_allowlist))
        if types is given:
            return self
        other = copy.copy(self)
        vars(other)["_declared"] = DeclaredTypes(types)
        return other

    def _with_serializer(
        self, extra_allowlist: Collection[tuple[str, ...]]
    ) -> HoldfastSaver:
        """The same for a caller's serializer: LangGraph's own take such a list."""
        other = super().with_allowlist(extra_allowlist)
        assert isinstance(other, HoldfastSaver)
        vars(other)["_declared"] = DeclaredTypes(SerializedTypes(other.serde))
        return other
