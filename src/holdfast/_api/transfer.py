"""Export and import of archives and JSON Lines."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TypedDict, Unpack

from msgspec.structs import replace

from holdfast._engine.context import Context
from holdfast._engine.threads.listing import names_of
from holdfast._engine.upkeep import archive, json_lines
from holdfast._engine.upkeep.json_lines import Shown
from holdfast._values.keywords import refuse_unknown
from holdfast._values.records import Progress
from holdfast.archive import Contents, Imported, Source, Target


class LinesOptions(TypedDict, total=False):
    """The choice of checkpoints for `Store.export_lines`, and the parts to write."""

    threads: Iterable[str] | None
    owner: str | None
    since: datetime | None
    shown: Shown
    heads: bool
    redact: Iterable[str]


async def export_archive(
    context: Context,
    to: Target,
    threads: Iterable[str] | None,
    owner: str | None,
    since: datetime | None,
    progress: Progress | None,
) -> Contents:
    """Write an archive."""
    names = await names_of(context, threads, owner)
    return await archive.export(context, to, archive.selected(names, since), progress)


async def export_lines(
    context: Context,
    to: Target,
    progress: Progress | None,
    **options: Unpack[LinesOptions],
) -> int:
    """Write JSON Lines; returns how many."""
    refuse_unknown("export_lines", options, LinesOptions)
    owner = options.get("owner")
    wanted = json_lines.wanted_lines(
        await names_of(context, options.get("threads"), owner),
        options.get("since"),
        options.get("shown", "state"),
        options.get("heads", False),
        options.get("redact", ()),
    )
    wanted = replace(wanted, about=owner is not None)
    return await json_lines.export_lines(context, to, wanted, progress)


async def import_archive(
    context: Context, source: Source, *, dry_run: bool, progress: Progress | None
) -> Imported:
    """Take in an archive."""
    return await archive.import_archive(
        context, source, dry_run=dry_run, progress=progress
    )
