"""A salvage, and what it saved and what is wrong with a store, as lines."""

from __future__ import annotations

from collections.abc import Iterator

import holdfast
from holdfast._engine.upkeep.salvage import Salvaged
from holdfast._engine.upkeep.verify import Problem
from holdfast.cli._given_key import given_key
from holdfast.cli._invocation import Invocation
from holdfast.cli._store_address import given_scope
from holdfast.cli._text import counted
from holdfast.cli.terminal.tables import Line

MOST_SHOWN = 20


def salvage_to(cli: Invocation, file: str) -> Salvaged:
    """Write all that can be read of the store, or of the scope, to a new one."""
    if given_scope(cli.options) is None:
        return holdfast.salvage(cli.address, file, key=given_key())
    with cli.reading() as store:
        return store.salvage(file)


def salvaged_lines(saved: Salvaged, target: str) -> Iterator[Line]:
    """The counts of the new store, and what was lost."""
    yield (
        ("saved", "good"),
        (f"  {counted(saved.checkpoints, 'checkpoint')} in ", ""),
        (f"{counted(saved.threads, 'thread')},", ""),
        (f" {counted(saved.journal_entries, 'journal entry')} to {target}", ""),
    )
    if saved.lost:
        yield (("lost", "bad"), (f"  {len(saved.lost):,}", ""))
        yield from problem_lines(saved.lost)


def problem_lines(problems: tuple[Problem, ...]) -> Iterator[Line]:
    """The first problems, and how many more there are."""
    for problem in problems[:MOST_SHOWN]:
        # The advice of each problem is the same; it is printed once, at the end.
        yield ((f"  {str(problem).partition('; run verify()')[0]}", ""),)
    if len(problems) > MOST_SHOWN:
        rest = len(problems) - MOST_SHOWN
        yield ((f"  and {rest:,} more; --json lists all", "faint"),)
