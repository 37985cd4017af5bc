"""The known formats: finding those that a path holds, and reading them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from itertools import islice
from typing import NamedTuple, cast

from holdfast._values.arguments import checked_path
from holdfast._values.records import checked_name
from holdfast.errors import FormatMismatch, NotFound, Unsupported
from holdfast.importers import langgraph
from holdfast.importers._files import shown, walk
from holdfast.importers._reader import Finding, Reader, Reading
from holdfast.importers._sqlite import is_database

GROUP = "holdfast.importers"
_OURS = {
    "aether": "aether",
    "claude": "claude",
    "cortex": "cortex",
    "echo": "echo",
    langgraph.FORMAT: "langgraph",
    "openai-agents": "openai_agents",
    "oxios": "oxios",
    "smooth": "smooth",
    "smooth-sqlite": "smooth_sqlite",
}
# Readers of folders, which can leave out the files that another has read. The last one
# takes every text and JSON file of a folder for a document.
FOLDERS = ("aether", "claude", "cortex", "echo", "smooth", "oxios")
LAST = "oxios"
# The path may be a home folder by mistake: do not search all of it.
DEPTH, MOST_LOOKED_AT = 8, 10_000


class Source(NamedTuple):
    """A file, folder or address, and the format in which it is read."""

    format: str
    path: str


def formats() -> tuple[str, ...]:
    """The names of the formats that can be imported."""
    return tuple(sorted({*_OURS, *(entry.name for entry in _plugins())}))


def sources_of(path: str) -> list[Source]:
    """The formats in a path, each once, and each database in a folder.

    Raises `FormatMismatch` if there are none, or if a file could be of two formats.
    """
    found = [Source(name, path) for name in formats() if _recognises(name, path)]
    if os.path.isdir(path):
        found += _databases(path)
        found.sort(key=lambda source: source.format == LAST)
    if len(found) == 1 or (found and os.path.isdir(path)):
        return found
    names = " or ".join(source.format for source in found)
    looks = f"could be {names}" if names else "is in no format known here"
    raise FormatMismatch(
        f"{shown(path)} {looks}; pass format= one of {', '.join(formats())}",
        code="unknown_format",
    )


def _databases(folder: str) -> Iterator[Source]:
    for file in islice(walk(folder, DEPTH, Reading()), MOST_LOOKED_AT):
        if is_database(file.path):
            names = [name for name in formats() if _recognises(name, file.path)]
            yield from (Source(name, file.path) for name in names[:1])


def _recognises(name: str, path: str) -> bool:
    return reader_of(name).recognises(path)


# --- reading --------------------------------------------------------------------------


def read_all(
    sources: Sequence[Source], resources: ExitStack
) -> list[tuple[Source, Reading]]:
    """A reading of each source but LangGraph's, which the adapter reads.

    Files that one reader has read are left out by the others, and not reported as
    damaged.
    """
    readings: list[tuple[Source, Reading]] = []
    for source in sources:
        if source.format != langgraph.FORMAT:
            taken = frozenset[str]().union(*(r.paths() for _, r in readings))
            reading = _read(source, taken)
            resources.enter_context(reading.resources)
            readings.append((source, reading))
    if len(sources) > 1:
        files = {shown(s.path) for s in sources if not os.path.isdir(s.path)}
        _report_once(readings, files)
    return readings


def _read(source: Source, taken: frozenset[str]) -> Reading:
    reader = reader_of(source.format)
    if source.format not in FOLDERS:
        return reader.read(source.path)
    read = cast("Callable[[str, frozenset[str]], Reading]", reader.read)
    return read(source.path, taken)


def _report_once(readings: Sequence[tuple[Source, Reading]], files: set[str]) -> None:
    """Leave findings to the reading that took the file, or else to the first one.

    ``files`` are sources themselves, which no reading of a folder has to report.
    """
    told: set[str] = set()
    for what in ("damaged", "ignored"):
        for source, reading in readings:
            others = (other.paths() for _, other in readings)
            known = told.union(files, *others) - reading.paths() - {shown(source.path)}
            found: list[Finding] = getattr(reading, what)
            found[:] = [finding for finding in found if finding.path not in known]
            told.update(finding.path for finding in found)


# --- the path -------------------------------------------------------------------------


def place_of(path: str | os.PathLike[str], name: str | None) -> str:
    """A path as it is read, or an address; raises if there is nothing."""
    if isinstance(path, str) and langgraph.is_address(path):
        if name in (None, langgraph.FORMAT):
            return path
        raise Unsupported(f"{name} is read from files; give a file or a folder")
    return _existing(path)


def _existing(path: object) -> str:
    given = checked_path(path, "path")
    # Links inside the source are not followed, but the path itself may be one.
    place = os.path.realpath(os.path.expanduser(given))
    if not os.path.exists(place):
        raise NotFound(f"{shown(place)} does not exist; give a file or a folder")
    return place


def reader_of(name: str) -> Reader:
    """The reader of a format."""
    checked_name(name, "format")
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
