"""Export and import of archives and JSON Lines: operations that load their code late.

Few programs call them, and ``import holdfast`` should not cost more for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Unpack

from msgspec.structs import replace

from holdfast._api.declared import LinesOptions
from holdfast._engine.context import Context
from holdfast._engine.threads.listing import names_of
from holdfast._values.keywords import refuse_unknown
from holdfast._values.records import Progress

if TYPE_CHECKING:
    from holdfast.archive import Contents, Imported, Source, Target


async def export_archive(
    context: Context,
    to: Target,
    threads: Iterable[str] | None,
    owner: str | None,
    since: datetime | None,
    progress: Progress | None,
) -> Contents:
    """Write an archive."""
    from holdfast._engine.upkeep.archive import export, selected  # noqa: PLC0415

    names = await names_of(context, threads, owner)
    return await export(context, to, selected(names, since), progress)


async def export_lines(
    context: Context,
    to: Target,
    progress: Progress | None,
    **options: Unpack[LinesOptions],
) -> int:
    """Write JSON Lines; returns how many."""
    from holdfast._engine.upkeep import json_lines  # noqa: PLC0415

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
    from holdfast._engine.upkeep import archive  # noqa: PLC0415

    return await archive.import_archive(
        context, source, dry_run=dry_run, progress=progress
    )
