"""Checkpoints as JSON Lines, for people and for programs that know nothing of us.

Values stand in the lines as they are stored: what is no JSON by itself, such as bytes
or a time, in the tagged form of the store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from datetime import datetime
from typing import Any, BinaryIO, Literal, cast

import msgspec
import orjson

from holdfast._engine.cache import Known
from holdfast._engine.context import Context
from holdfast._engine.threads.load import read_texts
from holdfast._engine.upkeep.archive import selected
from holdfast._port import Saves, Threads
from holdfast._values.manifest import WHOLE, decode_manifest
from holdfast._values.paths import Part, index_of, parse_path
from holdfast._values.records import PIN, Checkpoint, Progress, ThreadRecord
from holdfast.archive._target import Target, new_file
from holdfast.errors import NotFound, Unstorable

CHUNK = 200
REDACTED = "[redacted]"
EVERY = "*"

Shown = Literal["state", "messages"]


class Telling(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into the lines; ``redact`` are paths, in which ``*`` is any part."""

    threads: Collection[str] | None = None
    since: int | None = None
    shown: Shown = "state"
    heads: bool = False
    redact: tuple[tuple[Part, ...], ...] = ()


def wanted_lines(
    threads: Iterable[str] | None,
    since: datetime | None,
    shown: Shown,
    heads: bool,
    redact: Iterable[str],
) -> Telling:
    """What a caller asked for, checked."""
    if shown not in {"state", "messages"}:
        raise Unstorable("shown", f"is 'state' or 'messages', not {shown!r}")
    selection = selected(threads, since)
    return Telling(
        threads=selection.threads,
        since=selection.since,
        shown=shown,
        heads=heads,
        redact=tuple(parse_path(path) for path in redact),
    )


async def tell(
    context: Context, to: Target, telling: Telling, progress: Progress | None
) -> int:
    """Write a line for each checkpoint, thread by thread; returns how many."""
    threads = await _threads(context, telling)
    count = 0
    with new_file(to) as file:
        for done, thread in enumerate(threads):
            if progress is not None:
                progress(done, len(threads))
            count += await _tell_thread(context, thread, telling, file)
    if progress is not None:
        progress(len(threads), len(threads))
    return count


async def _threads(context: Context, telling: Telling) -> list[ThreadRecord]:
    """The threads to tell of, in the order in which they began."""
    if telling.threads is None:
        found = list(await context.backend.scan(Threads(without=PIN)))
        return sorted(found, key=lambda thread: thread.number)
    named = [await context.find_thread(name) for name in telling.threads]
    for name, thread in zip(telling.threads, named, strict=True):
        if thread is None:
            text = f"there is no thread {name!r} to export; see threads()"
            raise NotFound(text, thread=name)
    return [thread for thread in named if thread is not None]


async def _tell_thread(
    context: Context, thread: ThreadRecord, telling: Telling, file: BinaryIO
) -> int:
    count = 0
    async for checkpoint in _checkpoints(context, thread, telling):
        if telling.since is not None and checkpoint.saved_at < telling.since:
            continue
        file.write(await _line(context, checkpoint, thread.id, telling))
        count += 1
    return count


async def _checkpoints(
    context: Context, thread: ThreadRecord, telling: Telling
) -> AsyncIterator[Checkpoint]:
    if telling.heads:
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
    context: Context, checkpoint: Checkpoint, thread: str, telling: Telling
) -> bytes:
    manifest = decode_manifest(checkpoint)
    texts = await read_texts(context, Known(checkpoint, manifest))
    if telling.redact:
        state = {name: orjson.loads(text) for name, text in texts.items()}
    else:
        state = {name: orjson.Fragment(text) for name, text in texts.items()}
    shown: Any = state if manifest.is_mapping else state[WHOLE]
    for parts in telling.redact:
        shown = redacted(shown, parts)
    if telling.shown == "messages":
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
        "metadata": orjson.Fragment(checkpoint.encoded_metadata or b"{}"),
        telling.shown: shown,
    }
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def redacted(value: object, parts: tuple[Part, ...]) -> object:
    """A value without what stands at a path, in which ``*`` is any part."""
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
