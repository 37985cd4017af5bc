"""Erasing: removing threads so that no byte of their content is left.

An intent, a setting of the store, says what is being erased until it is done. If the
process is killed, the next one that opens the store for writing finishes it.
"""

from __future__ import annotations

import warnings
from functools import partial
from hashlib import sha256

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.search import index
from holdfast._engine.threads.removal import sweep, until_current
from holdfast._engine.upkeep.erase_plans import ErasurePlans
from holdfast._engine.upkeep.erasure import (
    INTENT,
    Counts,
    Erasure,
    ErasureRequest,
    new_receipt,
    signed,
)
from holdfast._engine.upkeep.prune_plans import LEFT, surplus
from holdfast._port import Entries, Prune, Threads
from holdfast._values.arguments import check_progress, checked_flags
from holdfast._values.records import Progress, ThreadRecord
from holdfast._values.typed import prepare
from holdfast.errors import Corrupt, HoldfastError

# How many tombstones lose their names in one transaction.
BATCH = 200

UNFINISHED = "an erasure was interrupted; open the store for writing to finish it"


class Intent(msgspec.Struct, frozen=True, omit_defaults=True):
    """The erasure in progress; once all is removed, only that a scrub is left to do.

    Empty if there is nothing to do: a setting cannot be removed.
    """

    request: ErasureRequest | None = None
    scrubs: bool = False


async def erase(
    context: Context,
    request: ErasureRequest,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Erasure:
    """Erase what a request asks for; returns the receipt. ``dry_run`` only counts."""
    checked_flags(dry_run=dry_run, forks=request.forks)
    check_progress(progress)
    run = _ErasureRun(context, request, progress)
    await run.check()
    before = await _last_change(context)
    try:
        is_shredded = await run.carry_out(dry_run=dry_run)
    except HoldfastError as error:
        if run.counts != Counts() and not dry_run:
            error.message += "; what was erased before stays erased: erase again"
        raise
    receipt = new_receipt(
        request,
        **msgspec.structs.asdict(run.counts),
        heads=run.heads.hexdigest(),
        before=before,
        after=await _last_change(context),
        erased_at=context.clock(),
        backups="unreadable" if is_shredded else "readable",
        dry_run=dry_run,
    )
    return receipt if dry_run else signed(context, receipt)


async def finish(context: Context) -> None:
    """Finish an erasure that was interrupted, if the store can be written to.

    If it cannot be finished the store is usable all the same, and this is tried again.
    """
    try:
        await _resume(context, await _intent(context))
    except HoldfastError as error:
        if error.code != "read_only":
            text = f"an erasure was interrupted and cannot be finished: {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)


async def _resume(context: Context, intent: Intent) -> None:
    if intent.request is not None:
        await _ErasureRun(context, intent.request).carry_out()
    elif intent.scrubs:
        await _scrub(context)


async def is_unfinished(context: Context) -> bool:
    """True if an erasure was interrupted, or another process is making one."""
    return await _intent(context) != Intent()


class _ErasureRun:
    """One erasure: a transaction for each family, so that others can write between."""

    def __init__(
        self,
        context: Context,
        request: ErasureRequest,
        progress: Progress | None = None,
    ) -> None:
        self._context, self._request = context, request
        self._plans = ErasurePlans(context, request)
        self._progress: Progress = progress or (lambda _done, _of: None)
        self._is_covered = True
        # The journal entries of the family that is being erased.
        self._entries = 0
        self.counts = Counts()
        self.heads = sha256()

    async def check(self) -> None:
        """Refuse to erase checkpoints that other threads need, before any change."""
        for family in await self._plans.families():
            await until_current(partial(self._plans.family, family))

    async def carry_out(self, *, dry_run: bool = False) -> bool:
        """Remove everything; returns true if earlier copies became unreadable."""
        if dry_run:
            await self._remove(dry_run=True)
            return False
        await self._begin()
        await self._remove()
        await self._finish_deletions()
        await until_current(self._remove_names)
        is_shredded = await self._destroy_key()
        self._context.cache.clear()
        # From here on, the intent does not name the subject.
        await _note(self._context, Intent(scrubs=True))
        await _scrub(self._context)
        return is_shredded

    async def _begin(self) -> None:
        """Note this erasure, after finishing one that was noted before.

        A store has one intent: of two processes one finishes the erasure of the other.
        """
        mine = Intent(self._request)
        # The caller asks again with forks=True after forks have stopped an erasure.
        stopped = Intent(msgspec.structs.replace(self._request, forks=False))
        found = await _intent(self._context)
        while found not in (Intent(), mine, stopped):
            await _resume(self._context, found)
            found = await _intent(self._context)
        await _note(self._context, mine)

    async def _remove(self, *, dry_run: bool = False) -> None:
        """Remove family by family, until nothing is left that was saved meanwhile."""
        families = await self._plans.families()
        while families:
            for done, family in enumerate(families):
                self._progress(done, len(families))
                await until_current(partial(self._family, family, dry_run=dry_run))
            self._progress(len(families), len(families))
            families = [] if dry_run else await self._plans.families()

    async def _family(self, number: int, *, dry_run: bool) -> None:
        found = await self._plans.family(number)
        entries = sum([await self._count_entries(thread) for thread in found.living])
        # An earlier attempt may have removed some before another writer overtook it.
        self._entries = max(self._entries, entries)
        keys, owner = self._context.keys, self._request.owner
        if keys is not None and owner is not None:
            self._is_covered &= keys.belongs(number, owner)
        counts = self.counts
        async for plan in found.prunes(self._context.clock(), dry_run=dry_run):
            pruned = await self._context.backend.prune(plan)
            counts += Counts(pruned.threads, pruned.checkpoints, 0, pruned.bytes)
            if not dry_run:  # it stays done if the next part is planned again
                self.counts = counts
        self.counts = counts + Counts(entries=self._entries)
        self._entries = 0
        for thread in found.living:
            if thread.head is not None:
                self.heads.update(thread.head.id.encode() + thread.head.sha256)

    async def _count_entries(self, thread: ThreadRecord) -> int:
        try:
            return len(await self._context.backend.scan(Entries(thread=thread.id)))
        except Corrupt:
            return 0  # entries that cannot be read are erased, too

    async def _finish_deletions(self) -> None:
        """Remove what interrupted deletions left: it may have been the subject's.

        A tombstone has lost its owner and agent; one that was named is erased already.
        """
        if self._request.thread is None:
            for family in await surplus(self._context, LEFT):
                await until_current(partial(sweep, self._context, family))

    async def _remove_names(self) -> None:
        """Remove the names of all deleted threads: some may have been the subject's."""
        if self._request.thread is not None:
            return
        batch: list[ThreadRecord] = []
        async for thread in self._plans.tombstones():
            batch.append(thread)
            if len(batch) == BATCH:
                await self._remove_batch(batch)
                batch = []
        if batch:
            await self._remove_batch(batch)

    async def _remove_batch(self, tombstones: list[ThreadRecord]) -> None:
        at, threads = self._context.clock(), tuple(tombstones)
        await self._context.backend.prune(Prune(at=at, threads=threads, erase=True))

    async def _destroy_key(self) -> bool:
        keys, owner = self._context.keys, self._request.owner
        if keys is None or owner is None:
            return False
        needed_secrets = await keys.destroy(owner)
        # Threads that another process began for the owner meanwhile are unreadable now.
        await self._remove()
        return needed_secrets and self._is_covered


async def _scrub(context: Context) -> None:
    await index.scrub(context)
    await _note(context, Intent())


async def _note(context: Context, intent: Intent) -> None:
    content = msgspec.json.encode(intent)
    await context.backend.setting(INTENT, content, replace=True)


async def _intent(context: Context) -> Intent:
    try:
        found = await context.backend.setting(INTENT)
        return msgspec.json.decode(found, type=Intent) if found else Intent()
    except (Corrupt, ValueError, RecursionError):
        # A damaged setting must not keep the store closed; `verify` reports it.
        return Intent()


async def _last_change(context: Context) -> int:
    newest = await context.backend.scan(Threads(every=True, limit=1))
    return newest[0].changed if newest else 0


prepare(Intent)
