"""Writes what a reader found to a store, once, and never over other work.

Checkpoints keep their ids, so that a second import finds them. It continues where the
first one ended, and does not change a thread that was used in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.records import conversations
from holdfast._engine.threads import save as saving
from holdfast._engine.threads.drafts import StateDraft
from holdfast._messages.attachments import kept
from holdfast._port import CheckpointKey, Saves, Start, ThreadKey
from holdfast._values.records import Progress, ThreadRecord, encode_metadata
from holdfast.conversations import counts_of, tally
from holdfast.errors import Conflict
from holdfast.importers._bundles import BundleWriter
from holdfast.importers._reader import Bundle, Finding, Line, Reading, Save
from holdfast.importers._targets import (
    FOREIGN,
    PREFIXES,
    STAMP,
    THREAD,
    ImportRefused,
    MissingSaves,
    agent_of,
    is_living,
    is_of,
    missing,
    names_for,
    origin_of,
    owner_of,
)

# Larger steps of a source are not taken over: they could not be referred to.
LARGEST_STEP = 10**15


class TargetThread(msgspec.Struct, frozen=True):
    """The name that a line gets in the store, and the thread that has it already."""

    name: str
    record: ThreadRecord | None


class ImportWriter:
    """Writes the result of one reading to a store."""

    def __init__(
        self,
        context: Context,
        format_: str,
        reading: Reading,
        *,
        dry_run: bool,
        progress: Progress | None,
    ) -> None:
        # The clock shows the source's times: retention must not be applied by them.
        self.context = replace(context, after_save=None)
        self.format, self.reading, self.dry_run = format_, reading, dry_run
        self.conflicts: list[Finding] = []
        self.imported: Counter[str] = Counter()
        self.already_there: Counter[str] = Counter()
        self._names: dict[str, Line] = {}
        self._progress, self._done = progress, 0
        self._bundle_writer = BundleWriter(self.context, format_, dry_run=dry_run)

    async def run(self) -> None:
        """Write everything; the threads used last are written last."""
        lines = self.reading.lines
        for line in sorted(lines, key=lambda line: lines[line][-1].at):
            before = self._done
            await self._attempt(self._write(line), lines[line][0].path, line)
            self._advance(before + len(lines[line]) - self._done)
        for bundle in self.reading.bundles:
            await self._attempt(self._write_bundle(bundle), bundle.path, bundle)
            self._advance(1)

    def _advance(self, steps: int) -> None:
        total = sum(map(len, self.reading.lines.values())) + len(self.reading.bundles)
        self._done += steps
        if steps and self._progress:
            self._progress(self._done, total)

    async def _attempt(
        self, work: Coroutine[Any, Any, None], path: str, what: Line | Bundle
    ) -> None:
        try:
            await work
        except (ImportRefused, Conflict) as refused:
            self._refuse(path, what, str(refused))

    def _refuse(self, path: str, what: Line | Bundle, reason: str) -> None:
        kind = what.kind if isinstance(what, Line) else "checkpoint"
        self.conflicts.append(Finding(path, f"{kind} {what.id!r}: {reason}"))

    async def _write_bundle(self, bundle: Bundle) -> None:
        is_new = await self._bundle_writer.write(bundle)
        counts = self.imported if is_new else self.already_there
        counts["agent_checkpoints"] += 1

    async def _write(self, line: Line) -> None:
        saves = self.reading.lines[line]
        target = await self._target(line)
        found = await self._missing(target, saves)
        if found.problem:
            self._refuse(saves[0].path, line, found.problem)
        written = await self._save_all(line, target.name, found)
        self._bundle_writer.note(line, target.name, (*found.there, *written))
        _count(self.imported, line, written, threads=1)
        _count(self.already_there, line, found.there, threads=0 if written else 1)

    async def _target(self, line: Line) -> TargetThread:
        names = [n for n in names_for(line) if self._names.get(n, line) == line]
        records = await self.context.backend.read([ThreadKey(name) for name in names])
        found = dict(zip(names, records, strict=True))
        mine = [name for name, record in found.items() if is_of(line, record)]
        free = [name for name, record in found.items() if not is_living(record)]
        for name in (*mine, *free):
            self._names[name] = line
            if not name.endswith(line.id):
                self.reading.infer(f"{line.kind} {line.id!r} is kept as {name!r}")
            return TargetThread(name, found[name])
        raise ImportRefused(FOREIGN)

    async def _missing(
        self, target: TargetThread, saves: Sequence[Save]
    ) -> MissingSaves:
        record = target.record
        if record is None or record.head is None or not is_living(record):
            return missing(record, saves, (), None)
        keys = [CheckpointKey(record.family, cast("str", save.id)) for save in saves]
        stored = [
            found if found and found.thread_number == record.number else None
            for found in await self.context.backend.read(keys)
        ]
        last = Saves(family=record.family, thread=record.id, limit=1)
        newest = next(iter(await self.context.backend.scan(last)), None)
        return missing(record, saves, stored, newest)

    async def _save_all(self, line: Line, name: str, found: MissingSaves) -> list[Save]:
        written: list[Save] = []
        above = found.after
        for save in found.saves:
            prepared = self._prepared(line, save)
            if prepared is None:
                continue
            if not self.dry_run:
                draft, how = prepared
                then = replace(self.context, clock=lambda at=save.at: at)
                how = replace(how, expect=above)
                above = await saving.save(then, name, draft, how)
            written.append(save)
            self._advance(1)
        return written

    def _prepared(
        self, line: Line, save: Save
    ) -> tuple[StateDraft, saving.Options] | None:
        """The draft and its options, ``None`` if the state turns out to be damaged."""
        with self.reading.attempt(save.path, f"checkpoint {save.id!r}"):
            state = save.state()
            if line.kind == conversations.KIND:
                created_at = self.reading.lines[line][0].at
                state = _whole(cast("dict[str, Any]", state), created_at)
            return StateDraft(state), self._options(line, save)
        return None

    def _options(self, line: Line, save: Save) -> saving.Options:
        stamp = {**save.origin, "format": self.format, "digest": save.digest}
        if STAMP in save.metadata:
            stamp["displaced"] = save.metadata[STAMP]
        about: dict[str, object] = {"format": self.format, **origin_of(line)}
        start = Start(
            kind=line.kind,
            owner=owner_of(line),
            agent=agent_of(line),
            metadata=encode_metadata({STAMP: about}),
        )
        made = saving.options(
            label=save.label,
            tags=save.tags,
            metadata={**save.metadata, STAMP: stamp},
            kind="import",
            id=save.id,
            expect=None,
            journal=None,
            start=start,
        )
        is_countable = save.step is not None and 1 <= save.step <= LARGEST_STEP
        return replace(made, least_step=save.step) if is_countable else made


def _whole(state: dict[str, Any], created_at: int) -> dict[str, Any]:
    """A conversation's state with the values that are computed from its messages."""
    messages = kept(state["messages"])
    return {
        "created_at": created_at,
        **state,
        "messages": messages.messages,
        "counts": counts_of(tally(messages.messages)),
        **messages.all_apart(()),
    }


def _count(
    counts: Counter[str], line: Line, saves: Sequence[Save], *, threads: int
) -> None:
    if saves:
        kind = line.kind if line.kind in PREFIXES else THREAD
        counts["checkpoints"] += len(saves)
        counts[f"{kind}s"] += threads
        counts["messages"] += threads * saves[-1].messages
