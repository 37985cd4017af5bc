"""A removal from one family, divided into parts that are a transaction each."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence

from holdfast._engine.upkeep.family_source import FamilySource
from holdfast._engine.upkeep.family_tree import NOWHERE, FamilyTree
from holdfast._port import FamilyPlan, Outline, Relink
from holdfast._port.removal import merged, subtract
from holdfast._values.records import Checkpoint, Run
from holdfast.errors import Conflict

STAYING = -1


class RemovalParts:
    """Plans that remove checkpoints, the oldest first.

    After each of them every parent exists and every segment is in use: a child whose
    parent goes gets the nearest ancestor that stays, and a segment goes with the last
    part that has a user of it.
    """

    def __init__(
        self,
        family: int,
        tree: FamilyTree,
        gone: Sequence[int],
        size: int,
        known: int = 0,
    ) -> None:
        self.family, self._tree, self._size = family, tree, size
        self._known = known
        self._gone = array("q", (p for p, flag in enumerate(gone) if flag))
        # The part in which each place goes.
        self._part = array("q", [STAYING]) * len(tree)
        for rank, place in enumerate(self._gone):
            self._part[place] = rank // size
        self._heirs = tree.heirs(gone)
        self._children = self._find_children()
        self._runs: dict[int, list[Run]] = defaultdict(list)
        self._freed: list[list[Run]] = []

    def __len__(self) -> int:
        return (len(self._gone) + self._size - 1) // self._size

    @property
    def last(self) -> int:
        """The sequence number of the newest checkpoint that was known."""
        return self._tree.seqs[-1]

    def left_after(self, parts: int) -> int:
        """How many checkpoints are left once some parts were removed."""
        return len(self._tree) - min(parts * self._size, len(self._gone))

    def _find_children(self) -> dict[int, list[int]]:
        """By part the places of children that lose their parents in it, and stay."""
        found: dict[int, list[int]] = defaultdict(list)
        for place, parent in enumerate(self._tree.parents):
            if parent != NOWHERE and self._part[parent] != STAYING:
                part = self._part[parent]
                if self._part[place] != part:
                    found[part].append(place)
        return found

    def use(self, outlines: Iterable[Outline]) -> None:
        """Note which segments some checkpoints use; all have to be given."""
        used: dict[int, set[Run]] = defaultdict(set)
        for outline in outlines:
            place = self._tree.place_of(outline.seq)
            # What was saved since is built on what stays.
            if place != NOWHERE:
                used[self._part[place]].update(outline.runs)
        for part, runs in used.items():
            self._runs[part] = merged([*self._runs[part], *runs])

    def free(self) -> None:
        """Decide which segments go with which part, once all uses are noted."""
        later = self._runs[STAYING]
        for part in reversed(range(len(self))):
            self._freed.append(list(subtract(self._runs[part], later)))
            later = merged([*later, *self._runs[part]])
        self._freed.reverse()
        self._runs.clear()

    async def plan(self, part: int, source: FamilySource) -> FamilyPlan:
        """What goes with a part."""
        tree, start = self._tree, part * self._size
        seqs = [tree.seqs[place] for place in self._gone[start : start + self._size]]
        children = {
            tree.seqs[place]: self._heirs[tree.parents[place]]
            for place in self._children[part]
        }
        doomed = await source.doomed(seqs)
        wanted = {tree.seqs[h] for h in children.values() if h != NOWHERE} | {*children}
        found = {c.seq: c for c in await source.records(sorted(wanted))}
        if len(doomed) + len(found) < len(seqs) + len(wanted):
            raise overtaken()
        parents = {checkpoint.id: checkpoint for checkpoint in doomed}
        return FamilyPlan(
            self.family,
            tuple(doomed),
            tuple(
                _relink(found[seq], parents, self._at(heir, found))
                for seq, heir in children.items()
            ),
            tuple(self._freed[part]),
            known=self._known,
        )

    def _at(self, place: int, found: dict[int, Checkpoint]) -> Checkpoint | None:
        return None if place == NOWHERE else found[self._tree.seqs[place]]


def _relink(
    child: Checkpoint, parents: dict[str, Checkpoint], heir: Checkpoint | None
) -> Relink:
    parent = parents.get(child.parent or "")
    if parent is None:
        raise overtaken()
    return Relink(child, heir, child.link or parent.sha256)


def overtaken() -> Conflict:
    """Another writer changed a family while a part of it was planned."""
    return Conflict("the store changed while pruning; prune again", code="plan_stale")
