"""`holdfast stats`: counts and sizes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from holdfast._engine.upkeep.statistics import Heavy, Statistics
from holdfast._port import Pruned
from holdfast.cli import _command
from holdfast.cli._invocation import Invocation
from holdfast.cli._options import count_option, limit_option
from holdfast.cli._text import counted, size
from holdfast.cli.terminal.output import Output
from holdfast.cli.terminal.tables import Line
from holdfast.retention import Retention

MOST_VALUES = 3
HEADINGS = ("on disk", "smaller", "checkpoints", "threads", "largest values")


@_command.command("stats")
@count_option("--keep-last", "Also show what `prune --keep-last N` would free.")
@limit_option(10)
def command(cli: Invocation, *, keep_last: int | None, limit: int) -> None:
    """Show counts and sizes, and which threads take the most space.

    "saved whole" is the size that all states would have if each were written in full.
    In the list of threads, threads that share history are counted together: their size
    on disk, how many times smaller that is than "saved whole", the number of their
    checkpoints, and the largest values of their heads.
    """
    opened = cli.reading if keep_last is None else cli.writing
    with opened() as store:
        found = store.stats()
        heavy = store.heaviest(limit)
        freed = None
        if keep_last is not None:
            freed = store.prune(Retention(last=keep_last), dry_run=True)
    cli.out.answer(
        "stats/1", _document(found, heavy, freed), _lines(cli.out, found, heavy, freed)
    )


def _document(
    found: Statistics, heavy: tuple[Heavy, ...], freed: Pruned | None
) -> dict[str, object]:
    document = msgspec.structs.asdict(found)
    document["abilities"] = sorted(found.abilities)
    document["ratio"] = _ratio(found.logical_bytes, found.file_bytes)
    document["heaviest"] = [msgspec.structs.asdict(each) for each in heavy]
    if freed is not None:
        document["prunable"] = msgspec.structs.asdict(freed)
    return document


def _ratio(logical: int, stored: int) -> float | None:
    return round(logical / stored, 1) if stored else None


def _lines(
    out: Output, found: Statistics, heavy: tuple[Heavy, ...], freed: Pruned | None
) -> Iterator[Line]:
    yield from out.table(_counts(found))
    if freed is not None:
        yield (
            ("prunable     ", "title"),
            (counted(freed.checkpoints, "checkpoint"), ""),
            (f", {size(freed.bytes)}", ""),
        )
    if heavy:
        yield ()
        headings = tuple((text, "faint") for text in HEADINGS)
        rows = (headings, *map(_row, heavy))
        yield from out.table(rows, right=frozenset({0, 1, 2}))


def _counts(found: Statistics) -> Iterator[Line]:
    yield ("threads", "title"), (f"{found.threads:,}", "")
    yield ("checkpoints", "title"), (f"{found.checkpoints:,}", "")
    for name in ("conversations", "messages", "agents", "documents", "journal_entries"):
        if count := getattr(found, name):
            yield (name.replace("_", " "), "title"), (f"{count:,}", "")
    yield ("saved whole", "title"), (size(found.logical_bytes), "")
    ratio = _ratio(found.logical_bytes, found.file_bytes) or 0
    smaller = f"  {ratio}x smaller" if ratio > 1 else ""
    yield ("on disk", "title"), (f"{size(found.file_bytes)}{smaller}", "")


def _row(each: Heavy) -> Line:
    values = list(each.values.items())[:MOST_VALUES]
    shown = ", ".join(f"{name} {size(taken)}" for name, taken in values)
    return (
        (size(each.stored_bytes), ""),
        (f"{_ratio(each.logical_bytes, each.stored_bytes) or 0}x", "faint"),
        (f"{each.checkpoints:,}", ""),
        (", ".join(each.threads), "name"),
        (shown, "faint"),
    )
