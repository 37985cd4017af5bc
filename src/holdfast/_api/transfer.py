"""Export and import of archives and JSON Lines: operations that load their code late.

Few programs call them, and ``import holdfast`` should not cost more for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Unpack

from holdfast._api.keywords import LinesOptions
from holdfast._engine.context import Context
from holdfast._values.keywords import refuse_unknown
from holdfast._values.records import Progress

if TYPE_CHECKING:
    from holdfast.archive import Contents, Imported, Source, Target


async def export_archive(
    context: Context,
    to: Target,
    threads: Iterable[str] | None,
    since: datetime | None,
    progress: Progress | None,
) -> Contents:
    """Write an archive."""
    from holdfast._engine.upkeep.archive import export, selected  # noqa: PLC0415

    return await export(context, to, selected(threads, since), progress)


async def export_lines(
    context: Context,
    to: Target,
    progress: Progress | None,
    **options: Unpack[LinesOptions],
) -> int:
    """Write JSON Lines; returns how many."""
    from holdfast._engine.upkeep.json_lines import tell, wanted_lines  # noqa: PLC0415

    refuse_unknown("export_lines", options, LinesOptions)
    wanted = wanted_lines(
        options.get("threads"),
        options.get("since"),
        options.get("shown", "state"),
        options.get("heads", False),
        options.get("redact", ()),
    )
    return await tell(context, to, wanted, progress)


async def import_archive(
    context: Context, source: Source, *, dry_run: bool, progress: Progress | None
) -> Imported:
    """Take in an archive."""
    from holdfast._engine.upkeep import archive  # noqa: PLC0415

    return await archive.import_archive(
        context, source, dry_run=dry_run, progress=progress
    )
