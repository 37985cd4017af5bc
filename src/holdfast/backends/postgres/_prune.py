"""Carrying out the prunes of the port, or counting what they would remove."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from psycopg.types.numeric import Int2

from holdfast._port import FamilyPlan, Prune, Pruned, Write
from holdfast._port.removal import merged
from holdfast._values.graves import SALT_NAME, SALT_SIZE
from holdfast._values.records import Run, ThreadRecord
from holdfast.backends._sql.conflicts import stale_plan
from holdfast.backends.postgres import _search
from holdfast.backends.postgres._outcome import Trace
from holdfast.backends.postgres._rows import segment_values
from holdfast.backends.postgres._statements import Statements
from holdfast.backends.postgres._write import (
    Durable,
    PostgresWrite,
    hold_threads,
    in_order_of_names,
    rewrite,
)

LAST_NUMBER = 0xFFFF_FFFF


def cleared(plan: FamilyPlan) -> list[tuple[Run, bool]]:
    """The runs that a plan frees or replaces, and whether each must be complete."""
    packed = [Run(segment.number, segment.last) for segment in plan.packed]
    return [
        (run, any(run.first <= first <= run.last for first, _ in packed))
        for run in merged((*plan.free, *packed))
    ]


class PruneCounts:
    """Counts what a prune removes."""

    def __init__(self, db: Statements, plan: Prune) -> None:
        self.db = db
        self.plan = plan
        self.threads = self.checkpoints = self.segments = self.bytes = 0

    @property
    def pruned(self) -> Pruned:
        """The counts so far."""
        return Pruned(self.threads, self.checkpoints, self.segments, self.bytes)

    async def _check(self, plan: FamilyPlan, dropped: Iterable[int] = ()) -> None:
        """Refuse a plan of a changed family; ``dropped`` threads may lose heads."""
        checked = await self.db.row(
            "plan_is_stale",
            family=plan.family,
            dropped=list(dropped),
            doomed=[c.seq for c in plan.checkpoints],
            unmarked=sum(not (c.label or c.tags) for c in plan.checkpoints),
            children=[r.child.seq for r in plan.relinks],
            adopters=list({r.parent.seq for r in plan.relinks if r.parent}),
            known=plan.known,
        )
        if checked != (False,):
            raise stale_plan()


class DryRun(PruneCounts):
    """A prune that only counts, and locks nothing."""

    async def carry_out(self) -> None:
        """Count everything the plan names."""
        for family, threads in self._by_family().items():
            numbers = [thread.number for thread in threads]
            changed = [thread.changed for thread in threads]
            found = await self.db.row(
                "measure_threads", family=family, numbers=numbers, changed=changed
            )
            assert found is not None
            unchanged, others = found
            if unchanged != len(threads):
                raise stale_plan()
            self.threads += len(threads)
            if not others:
                await self._count("measure_family", family=family)
                await self._free(family, Run(0, LAST_NUMBER))
        for plan in self.plan.families:
            await self._thin_family(plan)

    def _by_family(self) -> dict[int, list[ThreadRecord]]:
        found: dict[int, list[ThreadRecord]] = {}
        for thread in self.plan.threads:
            found.setdefault(thread.family, []).append(thread)
        return found

    async def _thin_family(self, plan: FamilyPlan) -> None:
        dropped = self._by_family().get(plan.family, [])
        await self._check(plan, [thread.number for thread in dropped])
        doomed = [c.seq for c in plan.checkpoints]
        await self._count("measure_checkpoints", family=plan.family, doomed=doomed)
        for run, _ in cleared(plan):
            await self._free(plan.family, run)
        self.segments -= sum(segment.count for segment in plan.packed)
        self.bytes -= sum(len(segment.data) for segment in plan.packed)

    async def _count(self, statement: str, **values: Any) -> None:
        found = await self.db.row(statement, **values)
        assert found is not None
        self.checkpoints += found[0]
        self.bytes += found[1]

    async def _free(self, family: int, run: Run) -> None:
        found = await self.db.row(
            "measure_segments", family=family, first=run.first, last=run.last
        )
        assert found is not None
        self.segments += found[0]
        self.bytes += found[1]


class PostgresPrune(PruneCounts):
    """A prune being carried out inside a transaction."""

    def __init__(self, db: Statements, plan: Prune, durable: Durable) -> None:
        super().__init__(db, plan)
        self.at = plan.at
        self.durable: Durable = durable
        self.trace: Trace | None = None

    async def carry_out(self) -> None:
        """Remove everything the plan names."""
        plan = self.plan
        families = {t.family for t in plan.threads} | {f.family for f in plan.families}
        writes = (*plan.first, *plan.then)
        if families or writes:
            await hold_threads(self.db, writes, families)
        await self._check_logs()
        await self._write(plan.first)
        for thread in plan.threads:
            changed = thread.changed
            if thread.deleted_at is None:
                changed = await self._bury(thread)
            if plan.erase:
                await self._erase_name(thread, changed)
        for family in plan.families:
            await self._thin_family(family)
        if plan.forget_before is not None:
            await self._forget(plan.forget_before)
        await self._write(plan.then)

    async def _check_logs(self) -> None:
        for family in self.plan.families:
            if family.logged is not None:
                logged = await self.db.row("family_log", family=family.family)
                if logged != family.logged:
                    raise stale_plan()

    async def _forget(self, before: int) -> None:
        [(last,)] = await self.db.rows("forget_tombstones", before=before)
        if last is not None:
            # The search index may still hold threads that only the tombstones told it
            # to drop.
            await _search.reset(self.db, last)
        await self.db.rows("forget_moves")

    async def _write(self, writes: tuple[Write, ...]) -> None:
        for place in in_order_of_names(writes):
            await PostgresWrite(self.db, writes[place], self.durable).receipt()

    async def _bury(self, thread: ThreadRecord) -> int:
        """Leave a tombstone of a thread; returns the number of its deletion."""
        found = await self.db.row(
            "bury_thread",
            durable=self.durable,
            family=thread.family,
            number=thread.number,
            name=thread.id,
            changed=thread.changed,
            at=self.at,
        )
        if found is None or found[0] is None:
            raise stale_plan()
        self.threads += 1
        self._count(thread.family, found[0])
        logged: int = found[0][0]
        return logged

    async def _erase_name(self, tombstone: ThreadRecord, changed: int) -> None:
        salt = os.urandom(SALT_SIZE)  # stored if there is none yet
        await self.db.rows("insert_setting", name=SALT_NAME, value=salt)
        place = {"family": tombstone.family, "number": tombstone.number}
        found = await self.db.row(
            "erase_name", name=tombstone.id, changed=changed, **place
        )
        if found != (True,):
            raise stale_plan()

    async def _thin_family(self, plan: FamilyPlan) -> None:
        await self._check(plan)
        for relink in plan.relinks:
            link, parent = relink.link, relink.parent
            await rewrite(self.db, relink.child, link=link, parent=parent)
        if plan.packed:
            last = max(segment.last for segment in plan.packed)
            await self.db.rows("mark_packed", family=plan.family, last=last)
        runs = cleared(plan)
        found = await self.db.row(
            "thin",
            durable=self.durable,
            family=plan.family,
            at=self.at,
            ids=[c.id for c in plan.checkpoints],
            doomed=[c.seq for c in plan.checkpoints],
            firsts=[run.first for run, _ in runs],
            lasts=[run.last for run, _ in runs],
            whole=[Int2(is_whole) for _, is_whole in runs],
            counts=[segment.count for segment in plan.packed],
            **segment_values(plan.packed),
        )
        if found is None or found[0] is None:
            raise stale_plan()
        self._count(plan.family, found[0])
        for move in plan.moves:
            values = {"seq": move.seq, "kind": move.kind}
            await self.db.rows("rewrite_move", family=plan.family, **values)

    def _count(self, family: int, gone: Sequence[Any]) -> None:
        logged, checkpoints, segments, size = gone
        self.checkpoints += checkpoints
        self.segments += segments
        self.bytes += size
        if logged is not None:
            self.trace = Trace(family, logged, self.at)
