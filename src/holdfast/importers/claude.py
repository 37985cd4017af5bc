"""Reads transcripts of Claude Code and the Claude Agent SDK: a file of JSON lines each.

    <project>/<session>.jsonl -> thread of the session     turn -> checkpoint
    <session>/subagents/... -> thread of the subagent      timestamp -> saved_at
    line -> message or bookkeeping, as the adapter for the SDK stores it

A turn begins with what a user says. A transcript that has grown gets its new turns with
the next import. Lines that cannot be read are reported and left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import islice
from pathlib import PurePath
from typing import Any, cast

import msgspec

from holdfast._messages.claude_transcript import (
    LENGTH,
    MESSAGES,
    PREFIX,
    Transcript,
    TranscriptEntry,
    apart,
    is_message,
)
from holdfast._messages.transcript import role_of
from holdfast.importers._fields import Fields
from holdfast.importers._files import (
    SourceFile,
    checked_text,
    digest,
    parse,
    read_head,
    read_json,
    read_json_text,
    shown,
    walk,
)
from holdfast.importers._reader import Damaged, Finding, Line, Reading, Save

# <folder of Claude>/projects/<project>/<session>/subagents/workflows/<run>/<agent>
DEPTH = 8
# The path may be a home folder by mistake: do not search all of it.
MOST_LOOKED_AT = 10_000
SUBAGENTS, LINES, ABOUT = "subagents", ".jsonl", ".meta.json"
_MARKS = (b'"parentUuid"', b'"sessionId"', b'"leafUuid"', b'"messageId"')


class _Part(msgspec.Struct, frozen=True):
    """The part of a transcript up to the end of a turn."""

    end: int
    at: int
    digest: str


def recognises(path: str) -> bool:
    """True if a file, or one of those below a folder, begins like a transcript."""
    files = islice(walk(path, DEPTH, Reading()), MOST_LOOKED_AT)
    return any(map(_looks_right, files))


def read(path: str, without: frozenset[str] = frozenset()) -> Reading:
    """All transcripts below a folder, or the one of a file."""
    reading = Reading()
    for file in walk(path, DEPTH, reading, without):
        if _looks_right(file):
            with reading.attempt(shown(file.path)):
                _read_file(reading, file.path)
        elif not file.name.endswith(ABOUT):
            reading.ignore(shown(file.path), "is no transcript of Claude")
    return reading


def _looks_right(file: SourceFile) -> bool:
    head = read_head(file.path) if file.name.endswith(LINES) else b""
    return b'"type"' in head and any(mark in head for mark in _MARKS)


def _read_file(reading: Reading, path: str) -> None:
    transcript, place = _transcript(path), shown(path)
    line = Line(kind=transcript.kind, id=transcript.thread.removeprefix(PREFIX))
    contents = _contents(path)
    if not contents.entries:
        raise Damaged("has no line that can be read")
    reading.damaged += [Finding(place, problem) for problem in contents.problems]
    for part in _parts(contents):
        save = Save(
            at=part.at,
            path=place,
            digest=part.digest,
            state=partial(_state, path, part.end),
            messages=sum(map(is_message, contents.entries[: part.end])),
        )
        reading.put(line, save)
    reading.count(transcript.project)


def _transcript(path: str) -> Transcript:
    """The transcript of a file, by its folders; as the SDK names it."""
    parts = PurePath(os.path.abspath(path.removesuffix(LINES))).parts
    if SUBAGENTS in parts[2:]:
        start = parts.index(SUBAGENTS, 2)
        project, session = parts[start - 2 : start]
        return Transcript(project, session, "/".join(parts[start:]))
    *_, project, session = parts
    return Transcript(project, session)


def _parts(contents: _Contents) -> Iterator[_Part]:
    """The turns of a transcript; one that grows is another version of it."""
    entries, before, start = contents.entries, "", 0
    times = [_time(entry) for entry in entries]
    at = next(filter(None, times), contents.changed_at)
    begins = [n for n, entry in enumerate(entries) if role_of(entry) == "user"]
    for end in (*begins[1:], len(entries)):
        at = max([at, *times[start:end]])
        before = digest([before, entries[start:end]])
        yield _Part(end, at, before)
        start = end


def _time(entry: TranscriptEntry) -> int:
    """The time of an entry, 0 if it has none."""
    try:
        return Fields(dict(entry)).moment("timestamp").at
    except Damaged:
        return 0


def _state(path: str, end: int) -> dict[str, Any]:
    entries = _contents(path).entries
    if len(entries) < end:
        raise Damaged("changed while it was being imported; import it again")
    lists = apart(entries[:end], 0)
    return {**lists, LENGTH: len(lists[MESSAGES])}


# --- lines ----------------------------------------------------------------------------


class _Contents(msgspec.Struct, frozen=True):
    """The entries of a file, and the problems of lines that could not be read."""

    entries: list[TranscriptEntry]
    problems: list[str]
    changed_at: int


def _contents(path: str) -> _Contents:
    about = os.stat(path)
    return _read_contents(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=1)  # all turns of a transcript are written one after the other
def _read_contents(path: str, changed_at: int, _size: int) -> _Contents:
    found = _Contents([], [], changed_at // 1000)
    # Not splitlines: text in JSON may have other ends of lines.
    for number, text in enumerate(read_json_text(path, whole=False).split("\n"), 1):
        if text.strip():
            _add(found, f"line {number}", partial(_entry, text))
    about = path.removesuffix(LINES) + ABOUT
    if os.path.isfile(about):
        _add(found, os.path.basename(about), partial(_metadata, about))
    return found


def _add(contents: _Contents, part: str, entry: Callable[[], TranscriptEntry]) -> None:
    try:
        contents.entries.append(entry())
    except Damaged as damage:
        contents.problems.append(f"{part}: {damage}")


def _entry(text: str) -> TranscriptEntry:
    found = parse(checked_text(text))
    if not isinstance(found, dict):
        raise Damaged("is no object")
    return cast("TranscriptEntry", found)


def _metadata(path: str) -> TranscriptEntry:
    """The metadata of a subagent for the SDK; in files they are beside the lines."""
    found = read_json(path)
    if not isinstance(found, dict):
        raise Damaged("is no object")
    return {**cast("TranscriptEntry", found), "type": "agent_metadata"}
