"""Merging another line into a thread: a plan that reads, and the save that follows."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, cast, get_args

import msgspec
from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.threads.drafts import StateDraft
from holdfast._engine.threads.fork_point import MERGE, merge_base
from holdfast._engine.threads.load import current, load_any
from holdfast._engine.threads.merge_entries import merge_entry
from holdfast._engine.threads.merge_files import files_draft, merged_files
from holdfast._engine.threads.save import Options, save
from holdfast._messages.transcript import is_message
from holdfast._values.files import Tree, TreeChanges
from holdfast._values.merge import MergeConflict, Merged, Sides, three_way
from holdfast._values.records import Checkpoint, decode_metadata, encode_metadata
from holdfast.conversations import counts_of, tally
from holdfast.diff import Diff, diff
from holdfast.errors import Conflict, NotFound, Unstorable

Side: TypeAlias = Literal["ours", "theirs"]
Resolve: TypeAlias = Mapping[str, object] | Callable[[MergeConflict], object]

MOST_NAMED = 5
CONVERSATION = "conversation"


class Merge(msgspec.Struct, frozen=True, kw_only=True):
    """A merge of two lines, made or previewed.

    ``state`` is the merged state, and ``changes`` what it changes for this thread;
    where a conflict stays it has ours. ``files`` are the merged files, ``None`` if the
    other line has none, and ``file_changes`` the paths that change. ``resolved`` are
    the conflicts that were decided. ``checkpoint`` is the save; there is none for a
    preview, and if the thread has all of the other already.
    """

    base: Checkpoint
    ours: Checkpoint
    theirs: Checkpoint
    state: Any
    changes: Diff
    files: Tree | None = None
    file_changes: TreeChanges = TreeChanges()
    conflicts: tuple[MergeConflict, ...] = ()
    resolved: tuple[MergeConflict, ...] = ()
    checkpoint: Checkpoint | None = None

    @property
    def is_needed(self) -> bool:
        """True if the other line has anything that this thread has not merged yet."""
        return self.base.seq != self.theirs.seq

    def __str__(self) -> str:
        shown = (*self.conflicts, *file_lines(self.file_changes), self.changes)
        return "\n".join(map(str, shown))


def file_lines(changes: TreeChanges) -> list[str]:
    """A line for each file that changes."""
    signed = (
        *(("+", path) for path in changes.added),
        *(("-", path) for path in changes.removed),
        *(("~", path) for path in (*changes.changed, *changes.mode_changed)),
    )
    return [f"{sign} file {os.fsdecode(path)}" for sign, path in signed]


class Choice(msgspec.Struct, frozen=True):
    """The caller's decision about conflicts: by path, one by one, then by the side."""

    values: Mapping[str, object]
    function: Callable[[MergeConflict], object] | None
    prefer: Side | None

    def __call__(self, conflict: MergeConflict) -> object:
        """The value for a conflict, or the conflict itself if it stays one."""
        value = self.values.get(conflict.where, conflict)
        if self.function is not None:
            value = self.function(conflict)
        if value is conflict and self.prefer is not None:
            return conflict.ours if self.prefer == "ours" else conflict.theirs
        return value

    def check_used(self, places: list[str]) -> None:
        """Refuse a path to decide at which there is no conflict."""
        unused = [path for path in self.values if path not in places]
        if unused:
            found = f"they are at {_named(places)}" if places else "there are none"
            text = f"has {unused[0]!r}, which is no path of a conflict; {found}"
            raise Unstorable("resolve", text)


def choice(resolve: Resolve | None, prefer: Side | None) -> Choice:
    """The checked decision about conflicts."""
    if prefer is not None and prefer not in get_args(Side):
        raise Unstorable("prefer", f"is 'ours' or 'theirs', not {prefer!r}")
    if resolve is None or callable(resolve):
        return Choice({}, resolve, prefer)
    if isinstance(cast("object", resolve), Mapping):
        return Choice(resolve, None, prefer)
    text = f"must map paths to values or be a function, not {resolve!r}"
    raise Unstorable("resolve", text)


async def preview(
    context: Context, thread: str, other: str | Checkpoint, decide: Choice
) -> Merge:
    """The merge of another thread, or a checkpoint of it, into this one."""
    record = await context.get_thread(thread)
    ours = await context.get_head(thread)
    theirs = await _theirs(context, other)
    base = await merge_base(context, ours, theirs)
    if base is None:
        raise NotFound(
            f"thread {thread!r} and {theirs.thread!r} have no checkpoint in common;"
            " only forks of one thread can be merged",
            code="no_fork_point",
            thread=thread,
        )
    states = [await load_any(context, one) for one in (base, ours, theirs)]
    merged = _merged(states, decide, counted=record.kind == CONVERSATION)
    found = await merged_files(context, (base, ours, theirs), decide)
    conflicts, decided = merged.conflicts, merged.decided
    if found is not None:
        conflicts, decided = conflicts + found.conflicts, decided + found.decided
    decide.check_used([one.where for one in (*conflicts, *decided)])
    return Merge(
        base=base,
        ours=ours,
        theirs=theirs,
        state=merged.value,
        changes=diff(states[1], merged.value),
        files=found.tree if found else None,
        file_changes=found.changes if found else TreeChanges(),
        conflicts=conflicts,
        resolved=decided,
    )


async def _theirs(context: Context, other: str | Checkpoint) -> Checkpoint:
    if isinstance(other, Checkpoint):
        return await current(context, other)
    return await context.get_head(other)


def _merged(states: list[object], decide: Choice, *, counted: bool) -> Merged:
    """The merged state; ``counted`` is one of which the messages are counted."""
    if not counted or not all(isinstance(state, dict) for state in states):
        return three_way(Sides(*states), decide, is_message)
    # The counts follow from the messages, whichever side those come from.
    without = [_without_counts(cast("dict[str, Any]", state)) for state in states]
    merged = three_way(Sides(*without), decide, is_message)
    state = cast("dict[str, Any]", merged.value)
    counts = counts_of(tally(state.get("messages", ())))
    return replace(merged, value={**state, "counts": counts})


def _without_counts(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in state.items() if name != "counts"}


async def merge(context: Context, thread: str, plan: Merge, how: Options) -> Merge:
    """Save what a preview has planned; `Conflict` if anything is left to decide."""
    if plan.conflicts:
        raise _unresolved(thread, plan)
    if not plan.is_needed:
        return plan
    parents = {
        "base": plan.base.id,
        "ours": plan.ours.id,
        "theirs": plan.theirs.id,
        "thread": plan.theirs.thread,
    }
    metadata = encode_metadata({**decode_metadata(how.metadata), MERGE: parents})
    id_ = context.new_id()
    entry = merge_entry(thread, id_, plan.theirs.id)
    options = replace(
        how,
        expect=plan.ours,
        kind=MERGE,
        id=id_,
        metadata=metadata,
        merged=((entry.key, entry.data),),
    )
    draft = StateDraft(plan.state)
    if plan.files is not None and plan.file_changes:
        lines = (plan.base, plan.ours, plan.theirs)
        files = await files_draft(context, lines, plan.files)
        options = replace(options, files=files)
    return replace(plan, checkpoint=await save(context, thread, draft, options))


def _unresolved(thread: str, plan: Merge) -> Conflict:
    places = [conflict.where for conflict in plan.conflicts]
    return Conflict(
        f"thread {thread!r} and {plan.theirs.thread!r} changed the same:"
        f" {_named(places)}; decide with resolve= or prefer=",
        code="merge_conflict",
        thread=thread,
        conflicts=plan.conflicts,
    )


def _named(places: list[str]) -> str:
    more = ", ..." if len(places) > MOST_NAMED else ""
    return ", ".join(places[:MOST_NAMED]) + more
