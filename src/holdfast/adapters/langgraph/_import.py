"""Taking over the checkpoints of LangGraph's own savers: once, and over nobody's work.

Ids, parents, metadata and writes stay what they are; the versions of channels become
numbers. A second import adds what is new, and a thread that was used here since is left
alone.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from langgraph.checkpoint.base import Checkpoint as Put
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.threads import save
from holdfast._port import CheckpointKey
from holdfast._values.records import encode_metadata
from holdfast._values.reference import checked_id
from holdfast.adapters.langgraph import _put
from holdfast.adapters.langgraph._draft import PutDraft
from holdfast.adapters.langgraph._get import find_thread
from holdfast.adapters.langgraph._names import Place, made_at
from holdfast.adapters.langgraph._put import Putting
from holdfast.adapters.langgraph._serializer import Reader
from holdfast.adapters.langgraph._sources import Foreign, ForeignWrite, Source, opened
from holdfast.adapters.langgraph._task_writes import Call
from holdfast.adapters.langgraph._types import Types
from holdfast.errors import Conflict, FormatMismatch, Unstorable
from holdfast.importers import Counts, Damaged, Finding, Progress, Report
from holdfast.importers.langgraph import FORMAT

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Where checkpoints kept what is to be sent to nodes before they had a channel for it.
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
    reader = Reader(types)
    with opened(source, reader) as database:
        # Times are the source's; the store's policy must not be applied by them.
        quiet = replace(context, after_save=None)
        importing = _Importing(
            quiet, types, reader, database, dry_run=dry_run, progress=progress
        )
        await importing.run()
    return importing.report()


async def import_into(
    context: Context, path: str, *, dry_run: bool, progress: Progress | None
) -> Report:
    """As `import_from`, with the types that need no permission."""
    return await import_from(context, Types(), path, dry_run=dry_run, progress=progress)


class _Importing:
    def __init__(
        self,
        context: Context,
        types: Types,
        reader: Reader,
        source: Source,
        *,
        dry_run: bool,
        progress: Progress | None,
    ) -> None:
        self._progress, self._done = progress or _silence, 0
        self.context, self.types, self.reader = context, types, reader
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
            places = {place: self.source.ids(place) for place in self.source.places()}
        except Damaged as damage:
            self.damaged.append(Finding(self.source.shown, str(damage)))
            return
        self.found["threads"] = len({place.thread for place in places})
        self.found["namespaces"] = len(places)
        self.found["checkpoints"] = sum(map(len, places.values()))
        done = 0
        for place, ids in places.items():
            await self._attempt(self._take(place, ids), place)
            done += len(ids)
            self._tell(done)

    def _tell(self, done: int) -> None:
        if done > self._done:
            self._done = done
            self._progress(done, self.found["checkpoints"])

    async def _take(self, place: Place, ids: Sequence[str]) -> None:
        there = await self._there(place, ids)
        missing = [id_ for id_ in ids if id_ not in there]
        # Writes first: a checkpoint that is there has its writes.
        alone = [id_ for id_ in self.source.written(place) if id_ not in ids]
        for id_ in (*alone, *missing):
            await self._attempt(self._take_writes(place, id_), place, id_)
        versions: dict[str, Mapping[str, Any]] = {}
        for id_ in missing:
            await self._attempt(self._take_one(place, id_, versions), place, id_)
            self._tell(self._done + 1)
        self.already_there["checkpoints"] += len(there)
        counts = self.imported if missing or not ids else self.already_there
        counts["threads"] += 1

    async def _there(self, place: Place, ids: Iterable[str]) -> set[str]:
        """Those of some checkpoints that are here; refuses a thread used since."""
        record = await find_thread(self.context, place)
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

    async def _attempt(
        self, work: Coroutine[Any, Any, None], place: Place, id_: str | None = None
    ) -> None:
        try:
            await work
        except (Damaged, Unstorable) as problem:
            self._note(self.damaged, place, id_, str(problem))
        except (Conflict, FormatMismatch) as conflict:
            self._note(self.conflicts, place, id_, str(conflict))

    def _note(
        self, findings: list[Finding], place: Place, id_: str | None, reason: str
    ) -> None:
        where = f"{place.ns!r} of " if place.ns else ""
        what = "" if id_ is None else f"checkpoint {id_!r} "
        text = f"{where}thread {place.thread!r}: {what}{reason}"
        findings.append(Finding(self.source.shown, text))

    async def _take_one(
        self, place: Place, id_: str, versions: dict[str, Mapping[str, Any]]
    ) -> None:
        found = self.source.checkpoint(place, id_)
        self._add_sends(place, found)
        checkpoint = found.checkpoint
        before = versions.get(found.parent or "", {})
        versions[id_] = checkpoint["channel_versions"]
        changed = {c: v for c, v in versions[id_].items() if before.get(c) != v}
        asked = Putting(
            place=place,
            draft=PutDraft(
                self.types, _numbered({**checkpoint, "id": id_}), changed, found.parent
            ),
            how=save.Options(
                id=checked_id(id_),
                metadata=encode_metadata(self.types.plain(found.metadata, "metadata")),
            ),
            parent=found.parent,
            follows=False,
        )
        at = _time_of(id_, checkpoint)
        if self.dry_run:
            self.types.plain(checkpoint["channel_values"], "channel_values")
        else:
            await _put.put(self._then(at), asked)
        self.imported["checkpoints"] += 1

    def _then(self, at: int | None) -> Context:
        """The store at the time when a checkpoint was made."""
        return self.context if at is None else replace(self.context, clock=lambda: at)

    def _add_sends(self, place: Place, found: Foreign) -> None:
        """Give an early checkpoint what stands among the writes on its parent."""
        checkpoint = found.checkpoint
        if found.parent is None or checkpoint.get("v", 1) >= _SENDS_SINCE:
            return
        writes = self.source.writes(place, found.parent)
        writes.sort(key=lambda write: (write.path, write.task, write.index))
        sends = [self._value(write) for write in writes if write.channel == _SENDS]
        if sends:
            versions = checkpoint["channel_versions"]
            checkpoint["channel_values"][_SENDS] = sends
            versions[_SENDS] = max(versions.values()) if versions else 1

    async def _take_writes(self, place: Place, id_: str) -> None:
        tasks: dict[tuple[str, str], dict[int, tuple[str, Any]]] = defaultdict(dict)
        for write in self.source.writes(place, id_):
            self.found["writes"] += 1
            value = self.types.plain(self._value(write), write.channel)
            tasks[write.task, write.path][write.index] = write.channel, value
        if self.dry_run:
            return
        for (task, path), writes in tasks.items():
            call = Call(place, checked_id(id_), task, path, writes)
            await _put.put_writes(self.context, call)

    def _value(self, write: ForeignWrite) -> Any:
        return self.reader.read(write.kind, write.data)


def _silence(done: int, total: int) -> None:
    del done, total


def _numbered(checkpoint: Mapping[str, Any]) -> Put:
    """The same with numbers for versions, which they begin with."""
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
    """When a checkpoint was made, microseconds UTC."""
    try:
        moment = datetime.fromisoformat(checkpoint["ts"])
        return (moment - _EPOCH) // timedelta(microseconds=1)
    except (KeyError, TypeError, ValueError):
        return made_at(id_)
