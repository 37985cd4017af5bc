"""Planning a removal: new parents for children that stay, and segments to free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from holdfast._port import FamilyPlan, Relink
from holdfast._values.records import Checkpoint, Run


def plan_removal(
    family: int, checkpoints: Sequence[Checkpoint], doomed: Sequence[Checkpoint]
) -> FamilyPlan:
    """A plan after which every parent exists and every segment is in use."""
    gone = {checkpoint.id for checkpoint in doomed}
    staying = [checkpoint for checkpoint in checkpoints if checkpoint.id not in gone]
    return FamilyPlan(
        family,
        tuple(doomed),
        tuple(_relinks(checkpoints, staying, gone)),
        tuple(subtract(_runs(doomed), _runs(staying))),
    )


def _relinks(
    checkpoints: Sequence[Checkpoint], staying: Sequence[Checkpoint], gone: set[str]
) -> Iterator[Relink]:
    by_id = {checkpoint.id: checkpoint for checkpoint in checkpoints}
    for child in staying:
        if child.parent not in gone:
            continue
        parent = by_id[child.parent]
        link = child.link or parent.sha256
        ancestor: Checkpoint | None = parent
        while ancestor is not None and ancestor.id in gone:
            ancestor = by_id[ancestor.parent] if ancestor.parent else None
        yield Relink(child, ancestor, link)


def ancestry(checkpoints: Sequence[Checkpoint], ids: Iterable[str]) -> set[str]:
    parents = {checkpoint.id: checkpoint.parent for checkpoint in checkpoints}
    found: set[str] = set()
    for start in ids:
        current: str | None = start
        while current is not None and current not in found:
            found.add(current)
            current = parents.get(current)
    return found


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


def _runs(checkpoints: Iterable[Checkpoint]) -> Iterator[Run]:
    for checkpoint in checkpoints:
        yield from checkpoint.runs
