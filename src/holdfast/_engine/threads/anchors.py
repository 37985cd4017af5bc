"""Anchors of effects whose checkpoints are removed.

An effect belongs to the first checkpoint that has its call. When that is removed, the
nearest descendants that stay have the call too: an entry in the journal names them. So
does the entry of a recorder that claimed what another one had before its next save.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from holdfast._engine.context import Context
from holdfast._engine.threads.journal_keys import ANCHOR, EFFECT
from holdfast._engine.threads.merge_entries import (
    MergeEntry,
    merges_in,
    successors_by_merge,
)
from holdfast._messages.loose import fields_of, parts_of
from holdfast._port import FamilyEntries, FamilyPlan, Write
from holdfast._values import codec
from holdfast._values.records import UNSET, Entry


async def successors(context: Context, family: int, anchor: str) -> list[str]:
    """The checkpoints, saved or not, that have the calls of another one, and so on."""
    query = FamilyEntries(family=family, prefix=ANCHOR + anchor)
    entries = await context.backend.scan(query)
    if not any(anchor_of(entry.key) == anchor for entry in entries):
        return []
    # Each anchor may name a next one: every recorder that took over added a link.
    everything = FamilyEntries(family=family, prefix=ANCHOR)
    later = successors_in(await context.backend.scan(everything))
    return reached(anchor, later)[1:]


def claim_key(anchor: str, successor: str) -> str:
    """The key of the entry by which a recorder claims what another one had."""
    return f"{ANCHOR}{anchor}:{successor}"


def anchor_of(key: str) -> str:
    """The anchor that an entry with such a key names successors for."""
    return key.removeprefix(ANCHOR).partition(":")[0]


async def name_successor(
    context: Context, thread: str, anchors: Iterable[str], successor: str
) -> None:
    """Record that a checkpoint has the calls of others that are never saved."""
    now = context.clock()
    data = codec.encode([successor], "anchors")
    entries = tuple(Entry(thread, "", ANCHOR + id_, data, now) for id_ in anchors)
    write = Write(
        thread=thread, at=now, expect=UNSET, entries=entries, replace_entries=True
    )
    await context.backend.commit([write])


async def anchors_moved(context: Context, plan: FamilyPlan) -> list[Write]:
    """The entries to record when a plan removes checkpoints that effects belong to."""
    anchors = await _anchors(context, plan.family)
    merges = await merges_in(context, plan.family)
    if not anchors and not merges:
        return []
    heirs = _Heirs(plan, merges)
    now = context.clock()
    moved: dict[str, list[Entry]] = defaultdict(list)
    for thread, anchor, current in anchors:
        kept = heirs.of_all(current)
        if kept != current:
            # It does not follow itself if only its successors are removed.
            kept = [id_ for id_ in kept if id_ != anchor]
            data = codec.encode(kept, "anchors")
            moved[thread].append(Entry(thread, "", ANCHOR + anchor, data, now))
    for merge in merges:
        now_by, theirs = heirs.of_all([*merge.by]), heirs.ancestor_of(merge.theirs)
        changed = MergeEntry(merge.thread, merge.key, tuple(now_by), theirs)
        if changed != merge:
            entry = Entry(merge.thread, "", merge.key, changed.data, now)
            moved[merge.thread].append(entry)
    return [
        Write(
            thread=thread,
            at=now,
            expect=UNSET,
            entries=tuple(entries),
            replace_entries=True,
        )
        for thread, entries in moved.items()
    ]


async def _anchors(context: Context, family: int) -> list[tuple[str, str, list[str]]]:
    """Threads with effects, the anchors of these, and the checkpoints they mean."""
    found: set[tuple[str, str]] = set()
    for entry in await context.backend.scan(
        FamilyEntries(family=family, prefix=EFFECT)
    ):
        anchor = fields_of(entry.value).get("anchor")
        if isinstance(anchor, str):  # a caller may have recorded anything
            found.add((entry.thread, anchor))
    if not found:
        return []
    later = successors_in(
        await context.backend.scan(FamilyEntries(family=family, prefix=ANCHOR))
    )
    return [
        (thread, anchor, reached(anchor, later)) for (thread, anchor) in sorted(found)
    ]


def successors_in(entries: Iterable[Entry]) -> dict[str, list[str]]:
    """The successors that entries name, by anchor."""
    later: dict[str, list[str]] = defaultdict(list)
    for entry in entries:
        # A caller may have recorded anything.
        named = [id_ for id_ in parts_of(entry.value) if isinstance(id_, str)]
        later[anchor_of(entry.key)] += named
    return later


def reached(anchor: str, later: Mapping[str, list[str]]) -> list[str]:
    """An anchor, its successors, and theirs."""
    found, seen = [anchor], {anchor}
    for id_ in found:
        new = [each for each in later.get(id_, ()) if each not in seen]
        found += new
        seen.update(new)
    return found


class _Heirs:
    """For each checkpoint that a plan removes, its nearest descendants that stay.

    A checkpoint that has merged another one descends from it as well.
    """

    def __init__(self, plan: FamilyPlan, merges: Iterable[MergeEntry]) -> None:
        self._gone = {checkpoint.id: checkpoint for checkpoint in plan.checkpoints}
        self._children: dict[str | None, list[str]] = defaultdict(list)
        for id_, later in successors_by_merge(merges).items():
            self._children[id_] += later
        for checkpoint in plan.checkpoints:
            self._children[checkpoint.parent].append(checkpoint.id)
        for relink in plan.relinks:
            self._children[relink.child.parent].append(relink.child.id)

    def of_all(self, ids: list[str]) -> list[str]:
        found: list[str] = []
        waiting, seen = list(reversed(ids)), set[str]()
        while waiting:
            id_ = waiting.pop()
            if id_ in seen:
                continue
            seen.add(id_)
            if id_ in self._gone:
                waiting += reversed(self._children[id_])
            else:
                found.append(id_)
        return found

    def ancestor_of(self, id_: str | None) -> str | None:
        """The checkpoint itself if it stays, or its nearest ancestor that does."""
        while id_ in self._gone:
            id_ = self._gone[id_].parent
        return id_
