"""The merges of a family: an entry in the journal for each, found by its key.

A checkpoint has one parent, so the line of a thread does not lead to what it merged.
The entry of a merge names the checkpoint that was merged and the one that has it since.
It goes wherever the family goes; a removal names what takes the place of either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain

import msgspec

from holdfast._engine.context import Context
from holdfast._engine.threads.journal import entry_as
from holdfast._engine.threads.journal_keys import MERGED
from holdfast._engine.threads.lineage import is_ancestor
from holdfast._port import CheckpointKey, FamilyEntries
from holdfast._values import codec
from holdfast._values.records import Checkpoint, Entry
from holdfast._values.typed import prepare


class MergeEntry(msgspec.Struct, frozen=True):
    """A merge, as the journal of ``thread`` has it.

    The checkpoints ``by``, and all after them, have what ``theirs`` and the checkpoints
    before that one have. At first that is the merge alone. Of what was merged, nothing
    may be left.
    """

    thread: str
    key: str
    by: tuple[str, ...]
    theirs: str | None

    @property
    def data(self) -> bytes:
        """The value of the entry."""
        return codec.encode({"by": list(self.by), "theirs": self.theirs}, "merge")


def merge_entry(thread: str, merge: str, theirs: str) -> MergeEntry:
    """The entry of a merge that is made now."""
    return MergeEntry(thread, MERGED + merge, (merge,), theirs)


async def merges_in(context: Context, family: int) -> list[MergeEntry]:
    """The merges of a family, oldest first."""
    query = FamilyEntries(family=family, prefix=MERGED)
    return [_decoded(entry) for entry in await context.backend.scan(query)]


class _Form(msgspec.Struct):
    by: tuple[str, ...]
    theirs: str | None


def _decoded(entry: Entry) -> MergeEntry:
    form = entry_as(entry, _Form)
    return MergeEntry(entry.thread, entry.key, form.by, form.theirs)


async def merged_into(context: Context, head: Checkpoint) -> list[Checkpoint]:
    """The checkpoints that a line has merged, and those that these have merged."""
    pairs = [
        (id_, merge.theirs)
        for merge in await merges_in(context, head.family)
        for id_ in merge.by
        if merge.theirs is not None
    ]
    if not pairs:
        return []
    keys = [CheckpointKey(head.family, id_) for id_ in {*chain.from_iterable(pairs)}]
    found = {c.id: c for c in await context.backend.read(keys) if c}
    waiting: dict[str, list[Checkpoint]] = defaultdict(list)
    for by, theirs in pairs:
        if theirs in found:
            waiting[by].append(found[theirs])
    places = sorted(
        (c for c in found.values() if c.id in waiting), key=lambda c: -c.step
    )
    ends = [head]
    for end in ends:
        for place in await _on_line(context, end, places):
            ends += waiting.pop(place.id, ())
    return ends[1:]


async def _on_line(
    context: Context, end: Checkpoint, places: Iterable[Checkpoint]
) -> list[Checkpoint]:
    """The checkpoints on a line; they are given from the highest step down."""
    found: list[Checkpoint] = []
    for place in places:
        # Each is looked for from the last one found: together that is one walk.
        if place.step <= end.step and await is_ancestor(context, place, of=end):
            found.append(place)
            end = place
    return found


def successors_by_merge(merges: Iterable[MergeEntry]) -> Mapping[str, tuple[str, ...]]:
    """The checkpoints that have what another one has because they merged it."""
    later: dict[str, tuple[str, ...]] = {}
    for merge in merges:
        if merge.theirs is not None:
            later[merge.theirs] = (*later.get(merge.theirs, ()), *merge.by)
    return later


prepare(_Form)
