"""Imports the checkpoints of LangGraph's own savers, once, without overwriting.

Ids, parents, metadata and writes are unchanged; the versions of channels become
numbers. A second import adds new checkpoints, and does not change a thread that was
used here in between.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

from langgraph.checkpoint.base import Checkpoint as Put
from msgspec.structs import replace

from holdfast.adapters.langgraph import _put
from holdfast.adapters.langgraph._decoder import Decoder
from holdfast.adapters.langgraph._draft import PutDraft
from holdfast.adapters.langgraph._get import find_thread
from holdfast.adapters.langgraph._namespace import Namespace, made_at
from holdfast.adapters.langgraph._put import PutRequest
from holdfast.adapters.langgraph._saver_tables import (
    ForeignCheckpoint,
    ForeignWrite,
    SaverTables,
    opened,
)
from holdfast.adapters.langgraph._task_writes import TaskWrites
from holdfast.adapters.langgraph._types import Types
from holdfast.backends import CheckpointKey
from holdfast.errors import Conflict, FormatMismatch, Unstorable
from holdfast.importers import Counts, Damaged, Finding, Progress, Report
from holdfast.importers.langgraph import FORMAT
from holdfast.operations import Context
from holdfast.operations.threads import save
from holdfast.operations.values import EPOCH, checked_id, encode_metadata

# Before format 4 checkpoints had no channel for what is sent to nodes.
_SENDS, _SENDS_SINCE = "__pregel_tasks", 4


async def import_from(
    context: Context,
    types: Types,
    source: str | os.PathLike[str],
    *,
    dry_run: bool,
    progress: Progress | None,
) -> Report:
    """Put all checkpoints and writes of another saver into a store."""
    decoder = Decoder(types)
    with opened(source, decoder) as database:
        # The clock shows the times of the source: retention must not apply to them.
        quiet = replace(context, after_save=None)
        importing = _Import(
            quiet, types, decoder, database, dry_run=dry_run, progress=progress
        )
        await importing.run()
    return importing.report()


async def import_into(
    context: Context, path: str, *, dry_run: bool, progress: Progress | None
) -> Report:
    """Like `import_from`, with the types that need no permission."""
    return await import_from(context, Types(), path, dry_run=dry_run, progress=progress)


class _Import:
    def __init__(
        self,
        context: Context,
        types: Types,
        decoder: Decoder,
        source: SaverTables,
        *,
        dry_run: bool,
        progress: Progress | None,
    ) -> None:
        self._progress, self._done = progress, 0
        self.context, self.types, self.decoder = context, types, decoder
        self.source, self.dry_run = source, dry_run
        self.found: Counter[str] = Counter()
        self.imported: Counter[str] = Counter()
        self.already_there: Counter[str] = Counter()
        self.damaged: list[Finding] = []
        self.conflicts: list[Finding] = []

    def report(self) -> Report:
        return Report(
            format=FORMAT,
            path=self.source.shown,
            dry_run=self.dry_run,
            found=dict(self.found),
            imported=Counts(**self.imported),
            already_there=Counts(**self.already_there),
            inferred=(),
            damaged=tuple(self.damaged),
            conflicts=tuple(self.conflicts),
            ignored=(),
        )

    async def run(self) -> None:
        try:
            namespaces = {ns: self.source.ids(ns) for ns in self.source.namespaces()}
        except Damaged as damage:
            self.damaged.append(Finding(self.source.shown, str(damage)))
            return
        self.found["threads"] = len({namespace.thread for namespace in namespaces})
        self.found["namespaces"] = len(namespaces)
        self.found["checkpoints"] = sum(map(len, namespaces.values()))
        done = 0
        for namespace, ids in namespaces.items():
            await self._attempt(self._take(namespace, ids), _what(namespace))
            done += len(ids)
            self._tell(done)

    def _tell(self, done: int) -> None:
        if self._progress and done > self._done:
            self._progress(done, self.found["checkpoints"])
        self._done = max(done, self._done)

    async def _take(self, namespace: Namespace, ids: Sequence[str]) -> None:
        there = await self._there(namespace, ids)
        missing = [id_ for id_ in ids if id_ not in there]
        # Writes first, so that a stored checkpoint always has its writes.
        alone = [id_ for id_ in self.source.written(namespace) if id_ not in ids]
        for id_ in (*alone, *missing):
            await self._attempt(
                self._take_writes(namespace, id_), _what(namespace, id_)
            )
        versions: dict[str, Mapping[str, Any]] = {}
        for id_ in missing:
            taking = self._take_one(namespace, id_, versions)
            await self._attempt(taking, _what(namespace, id_))
            self._tell(self._done + 1)
        self.already_there["checkpoints"] += len(there)
        counts = self.imported if missing or not ids else self.already_there
        counts["threads"] += 1

    async def _there(self, namespace: Namespace, ids: Iterable[str]) -> set[str]:
        """The ids of stored checkpoints; `Conflict` if the thread was used since."""
        record = await find_thread(self.context, namespace)
        if record is None or (record.head is None and record.deleted_at is None):
            return set()
        if record.deleted_at is not None:
            raise Conflict("was deleted here; nothing was added to it")
        keys = [CheckpointKey(record.family, id_) for id_ in ids]
        found = [found for found in await self.context.backend.read(keys) if found]
        there = {checkpoint.id for checkpoint in found}
        assert record.head is not None
        if len(there) < len(keys) and record.head.id not in there:
            raise Conflict("was used here since; nothing was added to it")
        return there

    async def _attempt(self, work: Coroutine[Any, Any, None], what: str) -> None:
        """Do a part of the import; report a failure and continue with the rest."""
        try:
            await work
        except (Damaged, Unstorable) as problem:
            self.damaged.append(Finding(self.source.shown, f"{what}{problem}"))
        except (Conflict, FormatMismatch) as conflict:
            self.conflicts.append(Finding(self.source.shown, f"{what}{conflict}"))

    async def _take_one(
        self, namespace: Namespace, id_: str, versions: dict[str, Mapping[str, Any]]
    ) -> None:
        found = self.source.checkpoint(namespace, id_)
        self._add_sends(namespace, found)
        checkpoint = found.checkpoint
        before = versions.get(found.parent or "", {})
        versions[id_] = checkpoint["channel_versions"]
        changed = {c: v for c, v in versions[id_].items() if before.get(c) != v}
        asked = PutRequest(
            namespace=namespace,
            draft=PutDraft(
                self.types, _numbered({**checkpoint, "id": id_}), changed, found.parent
            ),
            how=save.Options(
                id=checked_id(id_),
                metadata=encode_metadata(self.types.tabled(found.metadata, "metadata")),
            ),
            parent=found.parent,
            follows=False,
        )
        at = _time_of(id_, checkpoint)
        if self.dry_run:
            self.types.plain(checkpoint["channel_values"], "channel_values")
        else:
            await _put.save_checkpoint(self._then(at), asked)
        self.imported["checkpoints"] += 1

    def _then(self, at: int | None) -> Context:
        """The context with the clock at the time of a checkpoint."""
        return self.context if at is None else replace(self.context, clock=lambda: at)

    def _add_sends(self, namespace: Namespace, found: ForeignCheckpoint) -> None:
        """Add to an early checkpoint the sends among the writes on its parent."""
        checkpoint = found.checkpoint
        if found.parent is None or checkpoint.get("v", 1) >= _SENDS_SINCE:
            return
        writes = self.source.writes(namespace, found.parent)
        writes.sort(key=lambda write: (write.path, write.task, write.index))
        sends = [self._value(write) for write in writes if write.channel == _SENDS]
        if sends:
            versions = checkpoint["channel_versions"]
            checkpoint["channel_values"][_SENDS] = sends
            versions[_SENDS] = max(versions.values()) if versions else 1

    async def _take_writes(self, namespace: Namespace, id_: str) -> None:
        tasks: dict[tuple[str, str], dict[int, tuple[str, Any]]] = defaultdict(dict)
        for write in self.source.writes(namespace, id_):
            self.found["writes"] += 1
            value = self.types.plain(self._value(write), write.channel)
            tasks[write.task, write.path][write.index] = write.channel, value
        if self.dry_run:
            return
        for (task, path), writes in tasks.items():
            call = TaskWrites(namespace, checked_id(id_), task, path, writes)
            await _put.save_writes(self.context, call)

    def _value(self, write: ForeignWrite) -> Any:
        return self.decoder.read(write.kind, write.data)


def _what(namespace: Namespace, id_: str | None = None) -> str:
    """The beginning of a remark about a namespace or a checkpoint of it."""
    where = f"{namespace.ns!r} of " if namespace.ns else ""
    what = "" if id_ is None else f"checkpoint {id_!r} "
    return f"{where}thread {namespace.thread!r}: {what}"


def _numbered(checkpoint: Mapping[str, Any]) -> Put:
    """The checkpoint with versions as numbers: the number their text begins with."""
    found = {
        **checkpoint,
        "channel_versions": _numbers(checkpoint["channel_versions"]),
        "versions_seen": {
            node: _numbers(seen) for node, seen in checkpoint["versions_seen"].items()
        },
    }
    return cast("Put", cast("object", found))


def _numbers(versions: Mapping[str, Any]) -> dict[str, Any]:
    return {
        channel: int(version.partition(".")[0]) if isinstance(version, str) else version
        for channel, version in versions.items()
    }


def _time_of(id_: str, checkpoint: Mapping[str, Any]) -> int | None:
    """The time at which a checkpoint was made, microseconds UTC."""
    try:
        moment = datetime.fromisoformat(checkpoint["ts"])
        return (moment - EPOCH) // timedelta(microseconds=1)
    except (KeyError, TypeError, ValueError):
        return made_at(id_)
