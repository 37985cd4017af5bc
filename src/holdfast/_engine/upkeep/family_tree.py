"""The checkpoints of a family as numbers, so that a million of them fit into memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from holdfast._port import Outline

LABELLED, TAGGED = 1, 2
# The place of what has no parent.
NOWHERE = -1


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

    def add(self, outlines: Iterable[Outline]) -> None:
        """Take checkpoints in, those of a thread after one another."""
        for outline in outlines:
            self.seqs.append(outline.seq)
            self.parents.append(outline.parent or 0)
            self.threads.append(outline.thread)
            self.saved_at.append(outline.saved_at)
            marks = LABELLED * outline.is_labelled | TAGGED * outline.is_tagged
            self.marks.append(marks)

    def close(self) -> None:
        """Put all of them in order."""
        seqs = self.seqs
        if any(seqs[n] > seqs[n + 1] for n in range(len(seqs) - 1)):
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

    def heirs(self, gone: Sequence[int]) -> array[int]:
        """For each place the nearest one that is not gone: itself or an ancestor."""
        found = array("q")
        for place, parent in enumerate(self.parents):
            if not gone[place]:
                found.append(place)
            else:
                found.append(NOWHERE if parent == NOWHERE else found[parent])
        return found
