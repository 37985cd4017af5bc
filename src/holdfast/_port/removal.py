"""Plans of removals: new parents for children that stay, and segments to free.

Every removal of checkpoints is planned here, from their outlines: an outline is small
and can be read page by page, so a plan never needs a whole family in memory.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from holdfast._port.family_queries import Outline
from holdfast._port.plans import FamilyPlan, Relink
from holdfast._values.records import Checkpoint, Run
from holdfast.errors import Conflict

LABELLED, TAGGED = 1, 2
# The place of what has no parent.
NOWHERE = -1
# The part of what stays: it comes after all others.
STAYING = 1 << 62
# At least so many runs are collected before they are merged with the others.
UNMERGED = 100


class FamilyTree:
    """The checkpoints of a family by their places, from the oldest on.

    Some 40 bytes each; a record with its content takes a thousand.
    """

    def __init__(self) -> None:
        self.seqs = array("q")
        # First the numbers of parents; `close` makes them places.
        self.parents = array("q")
        self.threads = array("q")
        self.saved_at = array("q")
        self.marks = bytearray()

    def add(self, outlines: Sequence[Outline]) -> None:
        """Take checkpoints in, those of a thread after one another."""
        self.seqs.extend([outline.seq for outline in outlines])
        self.parents.extend([outline.parent or 0 for outline in outlines])
        self.threads.extend([outline.thread for outline in outlines])
        self.saved_at.extend([outline.saved_at for outline in outlines])
        self.marks.extend(
            [LABELLED * o.is_labelled | TAGGED * o.is_tagged for o in outlines]
        )

    def close(self) -> None:
        """Put all of them in order."""
        seqs = self.seqs
        if any(one > other for one, other in pairwise(seqs)):
            order = sorted(range(len(seqs)), key=seqs.__getitem__)
            self.seqs, self.parents, self.threads, self.saved_at = (
                array("q", map(numbers.__getitem__, order))
                for numbers in (seqs, self.parents, self.threads, self.saved_at)
            )
            self.marks = bytearray(map(self.marks.__getitem__, order))
        self.parents = array("q", map(self.place_of, self.parents))

    def __len__(self) -> int:
        return len(self.seqs)

    def place_of(self, seq: int) -> int:
        """The place of a sequence number, `NOWHERE` if it is not here."""
        place = bisect_left(self.seqs, seq)
        found = place < len(self.seqs) and self.seqs[place] == seq
        return place if found else NOWHERE

    def places_of(self, seqs: Iterable[int]) -> Iterator[int]:
        """The places of the sequence numbers that are here."""
        places = map(self.place_of, seqs)
        return (place for place in places if place != NOWHERE)

    def saved_in(self, threads: set[int]) -> Iterator[int]:
        """The places of what was saved in some threads."""
        return (place for place, n in enumerate(self.threads) if n in threads)

    def by_thread(self, without: Sequence[int]) -> Iterator[array[int]]:
        """The places of each thread's checkpoints but those flagged in ``without``."""
        found: dict[int, array[int]] = defaultdict(lambda: array("q"))
        for place, thread in enumerate(self.threads):
            if not without[place]:
                found[thread].append(place)
        yield from found.values()

    def ancestry(self, places: Iterable[int]) -> bytearray:
        """A flag for each place: 1 for the given ones and all their ancestors."""
        found = bytearray(len(self))
        for place in places:
            while place != NOWHERE and not found[place]:
                found[place] = 1
                place = self.parents[place]  # noqa: PLW2901 - the walk to the root
        return found

    def descent(self, places: Iterable[int]) -> bytearray:
        """A flag for each place: 1 for the given ones and all their descendants."""
        found = bytearray(len(self))
        for place in places:
            found[place] = 1
        for place, parent in enumerate(self.parents):
            if parent != NOWHERE and found[parent]:
                found[place] = 1
        return found

    def heirs(self, gone: Sequence[int]) -> array[int]:
        """For each place the nearest one that is not gone: itself or an ancestor."""
        found = array("q")
        for place, parent in enumerate(self.parents):
            if not gone[place]:
                found.append(place)
            else:
                found.append(NOWHERE if parent == NOWHERE else found[parent])
        return found


class RemovalParts:
    """A removal from one family, divided into parts that are a transaction each.

    After each part every parent exists and every segment is in use: a child whose
    parent goes gets the nearest ancestor that stays, and a segment goes with the last
    part that has a user of it.
    """

    def __init__(
        self,
        family: int,
        tree: FamilyTree,
        parts: Sequence[Sequence[int]],
        known: int = 0,
    ) -> None:
        self.family, self._tree, self._parts = family, tree, parts
        self._known = known
        # The part in which each place goes.
        self._part, gone = array("q", [STAYING]) * len(tree), bytearray(len(tree))
        for number, places in enumerate(parts):
            for place in places:
                self._part[place], gone[place] = number, 1
        self._heirs = tree.heirs(gone)
        self._children = self._find_children()
        self._runs: dict[int, _Runs] = defaultdict(_Runs)
        self._freed: list[list[Run]] = []

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def last(self) -> int:
        """The sequence number of the newest checkpoint that was known."""
        return self._tree.seqs[-1]

    def left_after(self, parts: int) -> int:
        """The number of checkpoints that are left once some parts were removed."""
        return len(self._tree) - sum(map(len, self._parts[:parts]))

    def _find_children(self) -> dict[int, list[int]]:
        """By part the places of children that lose their parents in it, and stay."""
        found: dict[int, list[int]] = defaultdict(list)
        parts = self._part
        for place, parent in enumerate(self._tree.parents):
            if parent != NOWHERE and parts[place] > parts[parent]:
                found[parts[parent]].append(place)
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
            self._runs[part].add(runs)

    def free(self) -> None:
        """Decide which segments go with which part, once all uses are noted."""
        later = self._runs[STAYING]
        for part in reversed(range(len(self))):
            runs = self._runs[part].merged()
            self._freed.append(list(subtract(runs, later.merged())))
            later.add(runs)
        self._freed.reverse()
        self._runs.clear()

    def going(self, part: int) -> list[int]:
        """The sequence numbers of the checkpoints that go with a part."""
        return [self._tree.seqs[place] for place in self._parts[part]]

    def linked(self, part: int) -> list[int]:
        """The sequence numbers of the children and new parents in a part's plan."""
        children = self._children[part]
        heirs = {self._heirs[self._tree.parents[place]] for place in children}
        places = heirs.union(children) - {NOWHERE}
        return [self._tree.seqs[place] for place in sorted(places)]

    def plan(
        self, part: int, going: Sequence[Checkpoint], linked: Iterable[Checkpoint]
    ) -> FamilyPlan:
        """The plan of a part, of the records with the numbers that it named.

        `Conflict` (code ``plan_stale``) if one of them is missing, or got a label or
        tag since the family was read: it may have to stay.
        """
        tree, found = self._tree, {checkpoint.seq: checkpoint for checkpoint in linked}
        if len(going) < len(self._parts[part]):
            raise overtaken()
        for c in going:
            marks = LABELLED * (c.label is not None) | TAGGED * bool(c.tags)
            if marks != tree.marks[tree.place_of(c.seq)]:
                raise overtaken()
        parents = {checkpoint.id: checkpoint for checkpoint in going}
        relinks: list[Relink] = []
        for place in self._children[part]:
            heir = self._heirs[tree.parents[place]]
            child = found.get(tree.seqs[place])
            above = None if heir == NOWHERE else found.get(tree.seqs[heir])
            parent = parents.get(child.parent or "") if child else None
            if child is None or parent is None or (above is None and heir != NOWHERE):
                raise overtaken()
            relinks.append(Relink(child, above, child.link or parent.sha256))
        freed = tuple(self._freed[part])
        return FamilyPlan(
            self.family, tuple(going), tuple(relinks), freed, known=self._known
        )


class _Runs:
    """Runs of segments. Merged now and then, so that adding takes linear time."""

    def __init__(self) -> None:
        self._merged: list[Run] = []
        self._new: list[Run] = []

    def add(self, runs: Iterable[Run]) -> None:
        self._new += runs
        if len(self._new) > UNMERGED + len(self._merged):
            self.merged()

    def merged(self) -> list[Run]:
        if self._new:
            self._merged = merged([*self._merged, *self._new])
            self._new.clear()
        return self._merged


def overtaken() -> Conflict:
    """The error for a family that another writer changed while it was planned."""
    return Conflict("the store changed while pruning; prune again", code="plan_stale")


def plan_removal(
    family: int, checkpoints: Sequence[Checkpoint], doomed: Sequence[Checkpoint]
) -> FamilyPlan:
    """A plan after which every parent exists and every segment is in use."""
    tree, outlines = FamilyTree(), outlined(checkpoints)
    tree.add(outlines)
    tree.close()
    places = [tree.place_of(checkpoint.seq) for checkpoint in doomed]
    if NOWHERE in places:
        raise overtaken()
    parts = RemovalParts(family, tree, [places])
    parts.use(outlines)
    parts.free()
    return parts.plan(0, doomed, checkpoints)


def outlined(checkpoints: Sequence[Checkpoint]) -> list[Outline]:
    """Outlines of checkpoints that are at hand."""
    seqs = {checkpoint.id: checkpoint.seq for checkpoint in checkpoints}
    return [
        Outline(
            c.seq,
            seqs.get(c.parent or ""),
            c.thread_number,
            c.saved_at,
            c.label is not None,
            bool(c.tags),
            c.runs,
        )
        for c in checkpoints
    ]


def subtract(runs: Iterable[Run], kept: Iterable[Run]) -> Iterator[Run]:
    """The numbers in ``runs`` that are not in ``kept``, as ascending runs."""
    holes = merged(kept)
    position = 0
    for first, last in merged(runs):
        start = first
        while position and holes[position - 1].last >= start:
            position -= 1
        while position < len(holes) and holes[position].first <= last:
            hole = holes[position]
            if hole.first > start:
                yield Run(start, hole.first - 1)
            start = max(start, hole.last + 1)
            position += 1
        if start <= last:
            yield Run(start, last)


def merged(runs: Iterable[Run]) -> list[Run]:
    """The same numbers in ascending runs that are neither adjacent nor overlap."""
    result: list[Run] = []
    for run in sorted(runs):
        if run.first > run.last:  # the empty one before the files of a checkpoint
            continue
        if result and run.first <= result[-1].last + 1:
            result[-1] = Run(result[-1].first, max(result[-1].last, run.last))
        else:
            result.append(run)
    return result
