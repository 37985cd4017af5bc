"""The ends of the logs of moves, which the next move of each thread has to name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from holdfast._port import (
    KEYS,
    Backend,
    FamilyMoves,
    FamilyPlan,
    Prune,
    ThreadKey,
    ThreadMoves,
    Threads,
    Write,
)
from holdfast._values.records import Checkpoint, Move, ThreadRecord
from holdfast.errors import Conflict, Corrupt, HoldfastError
from holdfast.keys._caller_key import with_proofs
from holdfast.keys._moves import NOTHING, OF_REMOVALS, divided, logged
from holdfast.keys._records import Records

# How many threads are read at a time.
CHUNK = 1000
PUT_BACK = "it is an older one that was put back: its moves had proofs already"


class MoveEnds:
    """The ends of the logs while the writes of one transaction are encoded.

    The backend compares the number of the last move, so that of two who add one the
    second does it again.
    """

    def __init__(self, backend: Backend, records: Records) -> None:
        self._backend = backend
        self._records = records
        # The ids of the last moves of threads that these writes have added to.
        self._last: dict[str, bytes] = {}
        # The checkpoints that the transaction removes; all moves that name them go too.
        self._doomed: set[tuple[int, str]] = set()

    async def proven(self, write: Write, hidden: Write) -> Write:
        """A write as it is stored, with the proof of the move that it logs."""
        move = logged(write)
        if move is None or not self._records.ring.has_proofs:
            return hidden
        before, last_move = await self._end(write)
        proof = self._records.proofs.proof(move, before)
        if not self._is_doomed(_family_of(write), move):
            self._last[write.thread] = proof.id
        return replace(hidden, proof=str(proof), last_move=last_move)

    async def _end(self, write: Write) -> tuple[bytes, int | None]:
        """The id and the number of the last move of a thread."""
        if write.thread in self._last:
            return self._last[write.thread], None
        name = self._records.hide(write.thread, "thread")
        [thread] = await self._backend.read([ThreadKey(name)])
        if thread is None or thread.deleted_at is not None:
            return NOTHING, 0
        last = await self._last_move(thread)
        if last is None:
            return NOTHING, 0
        proof = divided(last.kind)[1]
        return proof.id if proof else NOTHING, last.seq

    async def _last_move(self, thread: ThreadRecord) -> Move | None:
        query = ThreadMoves(family=thread.family, number=thread.number, limit=1)
        return next(iter(await self._backend.scan(query)), None)

    async def thinned(self, plan: Prune) -> dict[int, FamilyPlan]:
        """The plans that remove checkpoints, with the moves that get another proof."""
        dropped = {self._records.hide(thread.id, "thread") for thread in plan.threads}
        self._last = {thread.id: NOTHING for thread in plan.threads}
        self._doomed = {(f.family, c.id) for f in plan.families for c in f.checkpoints}
        plans: dict[int, FamilyPlan] = {}
        for family in plan.families:
            if family.checkpoints and self._records.ring.has_proofs:
                query = FamilyMoves(families=(family.family,))
                moves = (await self._backend.scan(query)).items
                kept = [move for move in moves if move.thread not in dropped]
                plans[family.family] = replace(
                    family,
                    moves=tuple(self._linked(family.family, kept)),
                    logged=extent(moves),
                )
        return plans

    def _linked(self, family: int, moves: Iterable[Move]) -> Iterator[Move]:
        """The moves whose one before is removed, behind the last that stays.

        Only where the log is sound: what was tampered with gets no proof.
        """
        previous: dict[str, bytes] = {}
        for stored in moves:
            move = replace(stored, thread=self._records.show(stored.thread, "thread"))
            proof = divided(move.kind)[1]
            if proof is None:
                continue
            was = previous.get(move.thread, NOTHING)
            last = self._last.setdefault(move.thread, NOTHING)
            previous[move.thread] = proof.id
            if self._is_doomed(family, move):
                continue
            self._last[move.thread] = proof.id
            if proof.before == was != last:
                with contextlib.suppress(Corrupt):
                    shown, _ = self._records.proofs.opened(move)
                    proof = self._records.proofs.proof(shown, last, proof.id)
                    yield replace(stored, kind=f"{shown.kind}{proof}")

    def _is_doomed(self, family: int | None, move: Move) -> bool:
        places = {(family, move.source), (family, move.target)}
        return not self._doomed.isdisjoint(places)


async def prove_moves(backend: Backend, records: Records, setting: bytes) -> None:
    """Give proofs to the moves of a store that was made before moves had them.

    Last it is said that all have: killed before that, the next opening goes on. A role
    of a database that may not change settings leaves it to another. `Corrupt` if a
    checkpoint says that it was done before.
    """
    query: Threads | None = Threads(every=True, limit=CHUNK)
    while query is not None:
        page = await backend.scan(query)
        for thread in page:
            with contextlib.suppress(Corrupt):  # `verify` tells it
                await records.loaded(partial(records.show_thread, thread))
        if records.met_proofs:
            raise Corrupt("the setting 'keys'", PUT_BACK)
        for family in {thread.family for thread in page}:
            await _prove_family(backend, records, family)
        query = replace(query, after=page.cursor) if page.cursor else None
    changed = with_proofs(setting, records.ring.store)
    if await backend.setting(KEYS) != setting:
        return  # another program was first, and may have rotated the key since
    with contextlib.suppress(HoldfastError):
        await backend.setting(KEYS, changed, replace=True)


async def _prove_family(backend: Backend, records: Records, family: int) -> None:
    while True:
        moves = (await backend.scan(FamilyMoves(families=(family,)))).items
        without = {
            m.thread
            for m in moves
            if (kind := divided(m.kind))[1] is None and kind[0] not in OF_REMOVALS
        }
        if not without:
            return
        changed = [
            replace(m, kind=divided(m.kind)[0]) for m in moves if m.thread in without
        ]
        plan = FamilyPlan(
            family,
            (),
            (),
            (),
            moves=records.hide_moves(map(records.named_move, changed)),
            logged=extent(moves),
        )
        try:
            await backend.prune(Prune(at=0, families=(plan,)))
        except Conflict as conflict:
            if conflict.code != "plan_stale":
                raise
        else:
            return


def extent(moves: Iterable[Move]) -> tuple[int, int]:
    """The number of the last move, and how many there are, without those of prunes."""
    numbers = [m.seq for m in moves if divided(m.kind)[0] not in OF_REMOVALS]
    return max(numbers, default=0), len(numbers)


def _family_of(write: Write) -> int | None:
    if isinstance(write.expect, Checkpoint):
        return write.expect.family
    if write.marks:
        return write.marks[-1].checkpoint.family
    return write.turn.target.family if write.turn else None
