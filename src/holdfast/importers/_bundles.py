"""Writes checkpoints of agents; the saves they refer to are in the store already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.records import agent_checkpoints
from holdfast._engine.records.agent_checkpoints import (
    AgentCheckpointWriter,
    AgentThreads,
    CheckpointRequest,
)
from holdfast._port import CheckpointKey, ThreadKey
from holdfast._values.records import Checkpoint, ThreadRecord, checked_name
from holdfast.errors import Unstorable
from holdfast.importers._reader import Bundle, Line, Save, storable_id, storable_name
from holdfast.importers._targets import CHANGED, DELETED, STAMP, ImportRefused, stamp_of


class BundleWriter:
    """Makes checkpoints of agents from the saves of one import."""

    def __init__(self, context: Context, format_: str, *, dry_run: bool) -> None:
        self.context, self.format, self.dry_run = context, format_, dry_run
        self._names: dict[Line, str] = {}
        self._saves: dict[Line, frozenset[str | None]] = {}
        # Checkpoints already found readable: most belong to several bundles.
        self._read: set[int] = set()

    def note(self, line: Line, name: str, saves: Iterable[Save]) -> None:
        """Remember saves that are in the store, or would be without ``dry_run``."""
        self._names[line] = name
        self._saves[line] = frozenset(save.id for save in saves)

    async def write(self, bundle: Bundle) -> bool:
        """Make a checkpoint; False if the store has it already."""
        thread = agent_checkpoints.thread_of(storable_name(bundle.agent))
        [record] = await self.context.backend.read([ThreadKey(thread)])
        if record is not None and await self._is_there(bundle, record):
            return False
        for line, id_ in bundle.holds.items():
            if id_ not in self._saves.get(line, ()):
                raise ImportRefused(
                    f"{line.kind} {line.id!r} is not in the store as it was"
                )
        if not self.dry_run:
            await self._make(bundle)
        return True

    async def _is_there(self, bundle: Bundle, record: ThreadRecord) -> bool:
        if record.deleted_at is not None:
            raise ImportRefused(DELETED)
        key = CheckpointKey(record.family, storable_id(bundle.id))
        [found] = await self.context.backend.read([key])
        if found is not None and _stamp(found).get("digest") != bundle.digest:
            raise ImportRefused(CHANGED.format(id=bundle.id))
        if found is None and record.head is not None and not _stamp(record.head):
            raise ImportRefused("its agent got checkpoints since; it was left out")
        return found is not None

    async def _make(self, bundle: Bundle) -> None:
        agent = storable_name(bundle.agent)
        living: dict[str, ThreadRecord] = {}
        for line, id_ in bundle.holds.items():
            record = await self.context.get_thread(self._names[line])
            key = CheckpointKey(record.family, cast("str", id_))
            [head] = await self.context.backend.read([key])
            living[record.id] = replace(record, head=head)
        pins = (await agent_checkpoints.threads_of_agent(self.context, agent)).pins
        then = replace(self.context, clock=lambda: bundle.at)
        threads = AgentThreads(agent, living, pins)
        await AgentCheckpointWriter(
            then, threads, self._wanted(bundle), self._read
        ).run()

    def _wanted(self, bundle: Bundle) -> CheckpointRequest:
        stamp = {**bundle.origin, "format": self.format, "digest": bundle.digest}
        id_, name = storable_id(bundle.id), _label(bundle.name)
        if id_ != bundle.id:
            stamp["id"] = bundle.id
        if name != bundle.name:
            stamp["name"] = bundle.name
        return CheckpointRequest(
            id=id_,
            name=name,
            kind=bundle.kind,
            description=bundle.description,
            metadata={STAMP: stamp},
        )


def _label(name: str | None) -> str | None:
    try:
        return None if name is None else checked_name(name, "name")
    except Unstorable:
        return None


def _stamp(checkpoint: Checkpoint) -> dict[str, Any]:
    about = cast("dict[str, Any]", checkpoint.metadata.get("metadata") or {})
    return stamp_of(about) or {}
