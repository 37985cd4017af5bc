"""The operation: finds the format of a path, reads it, writes it, reports it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from holdfast._api import plugins
from holdfast._engine.context import Context
from holdfast._values.records import Progress
from holdfast.errors import FormatMismatch, NotFound, Unstorable, Unsupported
from holdfast.importers import langgraph
from holdfast.importers._files import shown
from holdfast.importers._reader import Reader
from holdfast.importers._report import Counts, Report
from holdfast.importers._write import ImportWriter

GROUP = "holdfast.importers"
_OURS = {
    "aether": "aether",
    "cortex": "cortex",
    "echo": "echo",
    langgraph.FORMAT: "langgraph",
    "oxios": "oxios",
    "smooth": "smooth",
    "smooth-sqlite": "smooth_sqlite",
}


def formats() -> tuple[str, ...]:
    """The names of the formats that can be imported."""
    return tuple(sorted({*_OURS, *(entry.name for entry in _plugins())}))


async def import_into(
    context: Context,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Put the content of a foreign file, folder or database into a store."""
    place = _place(path, format)
    name = _recognised(place) if format is None else format
    if name == langgraph.FORMAT:
        return await plugins.import_from_langgraph(
            context, place, dry_run=dry_run, progress=progress
        )
    reading = _reader(name).read(place)
    with reading.resources:
        writer = ImportWriter(
            context, name, reading, dry_run=dry_run, progress=progress
        )
        await writer.run()
    return Report(
        format=name,
        path=shown(place),
        dry_run=dry_run,
        found=reading.found,
        imported=Counts(**writer.imported),
        already_there=Counts(**writer.already_there),
        inferred=tuple(reading.inferred),
        damaged=tuple(reading.damaged),
        conflicts=tuple(writer.conflicts),
        ignored=tuple(reading.ignored),
    )


def _place(path: str | os.PathLike[str], name: str | None) -> str:
    if isinstance(path, str) and langgraph.is_address(path):
        if name in (None, langgraph.FORMAT):
            return path
        raise Unsupported(f"{name} is read from files; give a file or a folder")
    return _existing(path)


def _existing(path: object) -> str:
    given: object = path
    if isinstance(path, os.PathLike):
        given = cast("os.PathLike[str]", path).__fspath__()
    if not isinstance(given, str) or not given or "\0" in given:
        raise Unstorable("path", f"must be a file or a folder, not {path!r}")
    # Links inside the source are not followed, but the path itself may be one.
    place = os.path.realpath(os.path.expanduser(given))
    if not os.path.exists(place):
        raise NotFound(f"{shown(place)} does not exist; give a file or a folder")
    return place


def _recognised(path: str) -> str:
    """The format of a path; `FormatMismatch` unless exactly one recognises it."""
    found = [name for name in formats() if _reader(name).recognises(path)]
    if len(found) == 1:
        return found[0]
    looks = f"could be {' or '.join(found)}" if found else "is in no format known here"
    raise FormatMismatch(
        f"{shown(path)} {looks}; pass format= one of {', '.join(formats())}",
        code="unknown_format",
    )


def _reader(name: str) -> Reader:
    if name in _OURS:
        # A module with the functions of the protocol is a reader.
        return cast("Reader", import_module(f"holdfast.importers.{_OURS[name]}"))
    for entry in _plugins():
        if entry.name == name:
            return cast("Reader", entry.load())
    raise Unsupported(
        f"there is no importer for {name!r}; use one of {', '.join(formats())}, or"
        f" install a package that offers one as a {GROUP} entry point"
    )


def _plugins() -> Iterator[EntryPoint]:
    return iter(entry_points(group=GROUP))
