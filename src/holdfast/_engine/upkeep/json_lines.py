"""Checkpoints as JSON Lines, for people and for other programs.

Values are written as they are stored: those without a JSON form, such as bytes or a
time, in the tagged form of the store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from datetime import datetime
from typing import Any, BinaryIO, Literal, cast

import msgspec
import orjson

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads.load import read_texts
from holdfast._engine.upkeep.archive import selected
from holdfast._port import Entries, Saves, Threads
from holdfast._values.arguments import check_progress, checked_flag, checked_items
from holdfast._values.manifest import WHOLE, decode_manifest
from holdfast._values.paths import Part, index_of, parse_path
from holdfast._values.records import (
    PIN,
    Checkpoint,
    Progress,
    ThreadRecord,
    without_traceparent,
)
from holdfast.archive._target import Target, new_file
from holdfast.errors import NotFound, Unstorable

CHUNK = 200
REDACTED = "[redacted]"
EVERY = "*"

Shown = Literal["state", "messages"]


class LinesRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The form of an export; ``redact`` are paths, in which ``*`` matches any part.

    With ``about``, a line about each thread comes before those of its checkpoints.
    """

    threads: Collection[str] | None = None
    since: int | None = None
    shown: Shown = "state"
    heads: bool = False
    redact: tuple[tuple[Part, ...], ...] = ()
    about: bool = False


def wanted_lines(
    threads: Iterable[str] | None,
    since: datetime | None,
    shown: Shown,
    heads: bool,
    redact: Iterable[str],
) -> LinesRequest:
    """The request of a caller, checked."""
    checked_flag(heads, "heads")
    if shown not in ("state", "messages"):
        raise Unstorable("shown", f"is 'state' or 'messages', not {shown!r}")
    selection = selected(threads, since)
    return LinesRequest(
        threads=selection.threads,
        since=selection.since,
        shown=shown,
        heads=heads,
        redact=tuple(parse_path(path) for path in checked_items(redact, "redact")),
    )


async def export_lines(
    context: Context, to: Target, request: LinesRequest, progress: Progress | None
) -> int:
    """Write a line for each checkpoint, thread by thread; returns how many."""
    check_progress(progress)
    threads = await _threads(context, request)
    count = 0
    with new_file(to) as file:
        for done, thread in enumerate(threads):
            if progress is not None:
                progress(done, len(threads))
            count += await _write_thread(context, thread, request, file)
    if progress is not None:
        progress(len(threads), len(threads))
    return count


async def _threads(context: Context, request: LinesRequest) -> list[ThreadRecord]:
    """The threads to export, oldest first."""
    if request.threads is None:
        found = list(await context.backend.scan(Threads(without=PIN)))
        return sorted(found, key=lambda thread: thread.number)
    named = [await context.find_thread(name) for name in request.threads]
    for name, thread in zip(request.threads, named, strict=True):
        if thread is None:
            text = f"there is no thread {name!r} to export; see threads()"
            raise NotFound(text, thread=name)
    return [thread for thread in named if thread is not None]


async def _write_thread(
    context: Context, thread: ThreadRecord, request: LinesRequest, file: BinaryIO
) -> int:
    count = 0
    if request.about:
        file.write(await _about(context, thread))
        count += 1
    async for checkpoint in _checkpoints(context, thread, request):
        if request.since is not None and checkpoint.saved_at < request.since:
            continue
        file.write(await _line(context, checkpoint, thread.id, request))
        count += 1
    return count


async def _about(context: Context, thread: ThreadRecord) -> bytes:
    """The record of a thread without its states, and its journal."""
    entries = await context.backend.scan(Entries(thread=thread.id))
    document: dict[str, object] = {
        "thread": thread.id,
        "about": {
            "kind": thread.kind,
            "owner": thread.owner,
            "agent": thread.agent,
            "created_at": thread.created_at,
            "metadata": orjson.Fragment(thread.encoded_metadata or b"{}"),
        },
        "journal": [
            {
                "key": entry.key,
                "checkpoint": entry.checkpoint,
                "recorded_at": entry.recorded_at,
                "value": orjson.Fragment(entry.data),
            }
            for entry in entries
        ],
    }
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


async def _checkpoints(
    context: Context, thread: ThreadRecord, request: LinesRequest
) -> AsyncIterator[Checkpoint]:
    if request.heads:
        if thread.head is not None:
            yield thread.head
        return
    after: int | None = None
    while True:
        saves = Saves(
            family=thread.family,
            thread=thread.id,
            after=after,
            oldest_first=True,
            limit=CHUNK,
        )
        page = await context.backend.scan(saves)
        for checkpoint in page:
            yield checkpoint
        if len(page) < CHUNK:
            return
        after = page[-1].seq


async def _line(
    context: Context, checkpoint: Checkpoint, thread: str, request: LinesRequest
) -> bytes:
    manifest = decode_manifest(checkpoint)
    texts = await read_texts(context, OpenedCheckpoint(checkpoint, manifest))
    if request.redact:
        state = {name: orjson.loads(text) for name, text in texts.items()}
    else:
        state = {name: orjson.Fragment(text) for name, text in texts.items()}
    shown: Any = state if manifest.is_mapping else state[WHOLE]
    for parts in request.redact:
        shown = redacted(shown, parts)
    if request.shown == "messages":
        shown = shown.get("messages", []) if manifest.is_mapping else []
    document: dict[str, object] = {
        "thread": thread,
        "id": checkpoint.id,
        "parent": checkpoint.parent,
        "step": checkpoint.step,
        "saved_at": checkpoint.saved_at,
        "kind": checkpoint.kind,
        "label": checkpoint.label,
        "tags": checkpoint.tags,
        "metadata": orjson.Fragment(
            without_traceparent(checkpoint.encoded_metadata) or b"{}"
        ),
        request.shown: shown,
    }
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def redacted(value: object, parts: tuple[Part, ...]) -> object:
    """A value with `REDACTED` at a path, in which ``*`` matches any part."""
    if not parts:
        return REDACTED
    first, rest = parts[0], parts[1:]
    if isinstance(value, dict):
        mapping = cast("dict[str, object]", value)
        return {
            name: redacted(inner, rest) if first in (EVERY, name) else inner
            for name, inner in mapping.items()
        }
    if isinstance(value, list):
        items = cast("list[object]", value)
        index = range(len(items)) if first == EVERY else _only(first, len(items))
        return [
            redacted(inner, rest) if place in index else inner
            for place, inner in enumerate(items)
        ]
    return value


def _only(part: Part, size: int) -> range:
    index = index_of(part)
    if index is None or not -size <= index < size:
        return range(0)
    return range(index % size, index % size + 1)
