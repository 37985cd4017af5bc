"""One part of a checkpoint in full: a value, a message, an attachment, a file."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from holdfast._engine.context import Context
from holdfast._messages.parts import Media, Part, Thought
from holdfast._messages.transcript import as_text, calls_of, text_of
from holdfast.errors import NotFound, Unstorable
from holdfast.views.chat import media_document, parts_in, shown_parts
from holdfast.views.documents import plain
from holdfast.views.file_list import whole_file
from holdfast.views.showing import Position, Showing
from holdfast.views.state_values import StateReader, decoded, reader_of

# What one answer may hold, in bytes.
LARGEST = 32 << 20


class PartQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A value by its path, a message by its position, or a file by its own.

    Of a message: its text, the arguments of one ``call``, or one of its ``part``\\ s.
    """

    checkpoint: str
    path: str | None = None
    position: Position | None = None
    part: Position | None = None
    call: str | None = None
    file: Position | None = None


async def part_document(
    context: Context, query: PartQuery, showing: Showing
) -> dict[str, Any]:
    """A part in full."""
    if query.file is not None:
        return await whole_file(context, query.checkpoint, query.file, showing)
    reader = await reader_of(context, query.checkpoint)
    if query.position is None:
        return await _value(reader, query.path or "", showing)
    messages = (await reader.transcript()).messages
    if query.position >= len(messages):
        raise NotFound(f"there is no message {query.position}; see the messages")
    message = messages[query.position]
    if query.call is not None:
        return _arguments(message, query.call, showing)
    if query.part is None:
        return {"text": _checked(showing.whole(text_of(message)))}
    found = [part for _, part in shown_parts(parts_in(message))]
    if query.part >= len(found):
        raise NotFound(f"the message has no part {query.part}; see the messages")
    return _part(found[query.part], showing)


async def _value(reader: StateReader, path: str, showing: Showing) -> dict[str, Any]:
    value = showing.redacted(plain(decoded(await reader.at(path))))
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return {"path": path, "value": value, "text": _checked(text)}


def _arguments(message: object, id_: str, showing: Showing) -> dict[str, Any]:
    for call in calls_of(message):
        if call.id == id_:
            return {"text": _checked(showing.whole(as_text(call.arguments)))}
    raise NotFound(f"the message has no call {id_!r}; see the messages")


def _part(part: Part, showing: Showing) -> dict[str, Any]:
    if isinstance(part, Media):
        return {**media_document(part, showing), "base64": _checked(part.base64)}
    if isinstance(part, Thought):
        return {"kind": "thinking", "text": _checked(showing.whole(part.text))}
    value = showing.redacted(plain(getattr(part, "source", None)))
    return {"kind": "other", "text": _checked(orjson.dumps(value).decode())}


def _checked(text: str) -> str:
    if len(text) > LARGEST:
        reason = f"is larger than {LARGEST} characters; use holdfast show"
        raise Unstorable("part", reason)
    return text
