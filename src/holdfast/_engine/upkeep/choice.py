"""Which checkpoints of a family a prune removes."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import chain

from holdfast._engine.upkeep.family_source import FamilySource
from holdfast._engine.upkeep.family_tree import LABELLED, TAGGED, FamilyTree
from holdfast._values.records import PIN, ThreadRecord
from holdfast.retention import Retention, places_kept


class FamilyChoice:
    """What goes of a family of which some threads stay, and some of these are thinned.

    All answers are flags, one for each place of the tree.
    """

    def __init__(
        self,
        source: FamilySource,
        tree: FamilyTree,
        staying: Sequence[ThreadRecord],
        thinned: Sequence[ThreadRecord],
    ) -> None:
        self._source, self._tree = source, tree
        self._staying, self._thinned = staying, thinned
        self._living = {thread.number for thread in staying}

    async def gone(self, policy: Retention, now: int) -> bytearray:
        """What no thread needs that stays, and what a policy does not keep."""
        gone = await self._unneeded()
        if self._thinned:
            kept = await self._kept(policy, gone, now)
            may_go = await self._may_go()
            for place in range(len(gone)):
                if may_go[place] and not kept[place]:
                    gone[place] = 1
        return gone

    async def _unneeded(self) -> bytearray:
        """What deleted threads left behind and no thread descends from that stays."""
        if self._living.issuperset(self._tree.threads):
            return bytearray(len(self._tree))
        needed = await self._line(self._staying)
        return bytearray(not flag for flag in needed)

    async def _line(self, threads: Sequence[ThreadRecord]) -> bytearray:
        """All that some threads descend from, with what was saved in them."""
        own = self._tree.saved_in({thread.number for thread in threads})
        roots = [*_heads(threads), *await self._fork_points(threads)]
        return self._tree.ancestry(chain(own, self._tree.places_of(roots)))

    async def _kept(
        self, policy: Retention, gone: Sequence[int], now: int
    ) -> bytearray:
        tree, staying = self._tree, self._staying
        marks = LABELLED * policy.labelled | TAGGED * policy.tagged
        kept = bytearray(bool(mark & marks) for mark in tree.marks)
        forks = await self._fork_points(staying) if policy.forks else ()
        for place in tree.places_of(chain(_heads(staying), forks)):
            kept[place] = 1
        for places in tree.by_thread(without=gone):
            saved_at = array("q", (tree.saved_at[place] for place in places))
            for nth in places_kept(policy, saved_at, now):
                kept[places[nth]] = 1
        return kept

    async def _may_go(self) -> bytearray:
        """What was saved in threads that are thinned.

        Of what deleted threads left behind, also the part that no other thread needs.
        Where another thread was forked is kept.
        """
        tree, others = self._tree, self._others()
        found = bytearray(len(tree))
        for place in tree.saved_in({thread.number for thread in self._thinned}):
            found[place] = 1
        left = set(tree.threads) - self._living
        if left:
            needed = await self._line(others)
            for place in tree.saved_in(left):
                found[place] = not needed[place]
        for place in tree.places_of(await self._fork_points(others)):
            found[place] = 0
        return found

    def _others(self) -> list[ThreadRecord]:
        """The threads that are not thinned, without the pins of those that are."""
        names = {thread.id for thread in self._thinned}
        return [
            thread
            for thread in self._staying
            if thread.id not in names and _source(thread) not in names
        ]

    async def _fork_points(self, threads: Iterable[ThreadRecord]) -> list[int]:
        origins = {t.forked_from.checkpoint for t in threads if t.forked_from}
        return await self._source.numbers(origins) if origins else []


def _heads(threads: Iterable[ThreadRecord]) -> list[int]:
    return [thread.head.seq for thread in threads if thread.head is not None]


def _source(thread: ThreadRecord) -> str | None:
    """The thread that a pin holds."""
    origin = thread.forked_from if thread.kind == PIN else None
    return None if origin is None else origin.thread
