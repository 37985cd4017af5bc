"""The operation: finds the formats of a path, reads it, writes it, reports it."""

from __future__ import annotations

import os
from contextlib import ExitStack

from holdfast._api import plugins
from holdfast._engine.context import Context
from holdfast._values.records import Progress
from holdfast.importers import langgraph
from holdfast.importers._files import shown
from holdfast.importers._reader import Reading
from holdfast.importers._report import Counts, Report, joined
from holdfast.importers._sources import Source, place_of, read_all, sources_of
from holdfast.importers._write import ImportWriter


async def import_into(
    context: Context,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Put the content of a foreign file, folder or database into a store."""
    place = place_of(path, format)
    sources = sources_of(place) if format is None else [Source(format, place)]
    # Of LangGraph first: it may be missing, which is told before anything is written.
    reports = [
        await plugins.import_from_langgraph(
            context, source.path, dry_run=dry_run, progress=progress
        )
        for source in sources
        if source.format == langgraph.FORMAT
    ]
    with ExitStack() as resources:
        for source, reading in read_all(sources, resources):
            writer = ImportWriter(
                context, source.format, reading, dry_run=dry_run, progress=progress
            )
            await writer.run()
            reports.append(_report(source, reading, writer))
    return joined(shown(place), reports)


def _report(source: Source, reading: Reading, writer: ImportWriter) -> Report:
    return Report(
        format=source.format,
        path=shown(source.path),
        dry_run=writer.dry_run,
        found=reading.found,
        imported=Counts(**writer.imported),
        already_there=Counts(**writer.already_there),
        inferred=tuple(reading.inferred),
        damaged=tuple(reading.damaged),
        conflicts=tuple(writer.conflicts),
        ignored=tuple(reading.ignored),
    )
