"""Messages of any provider as a viewer shows them: calls with their results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from holdfast._engine.context import Context
from holdfast._messages.forms import plain_form
from holdfast._messages.loose import EMPTY, fields_of, kind_of, parts_of
from holdfast._messages.parts import (
    Media,
    Other,
    Part,
    Thought,
    attachment_part,
    contents_of,
    part_of,
)
from holdfast._messages.transcript import (
    TranscriptCall,
    answers_of,
    as_text,
    calls_of,
    role_of,
    text_of,
    tokens_of,
)
from holdfast.views.outcome import is_failed_result
from holdfast.views.showing import PageSize, Position, Showing
from holdfast.views.state_tree import pointer
from holdfast.views.state_values import Transcript, reader_of

# How many messages after a page are looked at for the results of its calls.
LOOK_AHEAD = 50
_CALL_BLOCKS = frozenset({"tool_use", "tool_result"})


class Answer(msgspec.Struct, frozen=True):
    """The result of a call: the message it stands in, and whether it is an error."""

    position: int
    text: str
    failed: bool


class ChatQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Some of a checkpoint's messages; without ``first``, the last ones."""

    checkpoint: str
    first: Position | None = None
    limit: PageSize = 100


async def messages_document(
    context: Context, query: ChatQuery, showing: Showing
) -> dict[str, Any]:
    """The messages of a checkpoint, from ``first`` on."""
    reader = await reader_of(context, query.checkpoint)
    transcript = await reader.transcript()
    total = len(transcript.messages)
    last = max(total - query.limit, 0)
    first = last if query.first is None else min(query.first, total)
    end = min(first + query.limit, total)
    chat = Chat(transcript, showing, range(first, end))
    return {
        "checkpoint": reader.checkpoint.id,
        "path": transcript.path,
        "total": total,
        "first": first,
        "messages": [chat.message(position) for position in range(first, end)],
        "next": end if end < total else None,
    }


class Chat:
    """Some messages of one checkpoint, with the answers to their calls."""

    def __init__(self, transcript: Transcript, showing: Showing, where: range) -> None:
        self.transcript, self.showing = transcript, showing
        # Results stand soon after their calls.
        end = min(where.stop + LOOK_AHEAD, len(transcript.messages))
        messages = transcript.messages
        self._messages = {n: plain_form(messages[n]) for n in range(where.start, end)}
        self._answers = _all_answers(self._messages)

    def message(self, position: int) -> dict[str, Any]:
        """One message."""
        message = self._messages[position]
        fields = fields_of(message)
        name, at = fields.get("name"), fields.get("timestamp", fields.get("at"))
        calls = calls_of(message, position)
        return {
            "position": position,
            "path": f"{self.transcript.path}/{position}",
            "role": role_of(message),
            "name": self.showing.name(name if isinstance(name, str) else None),
            "text": self.showing.text(text_of(message)),
            "parts": list(self._parts(message, position)),
            "calls": [self._call(call, message) for call in calls],
            "answers": answers_of(message),
            "error": is_failed_result(message),
            "at": at if isinstance(at, str | int) else None,
            "tokens": tokens_of(message),
        }

    def _call(self, call: TranscriptCall, message: object) -> dict[str, Any]:
        answer = self._answers.get((call.id, call.position))
        result, status = None, "open"
        if answer is not None:
            result = self.showing.text(answer.text)
            status = "failed" if answer.failed else "done"
        elif call.answered:
            own = _own_result(message, call.id)
            result = self.showing.value(own.get("result"))
            status = "failed" if own.get("status") == "failed" else "done"
        return {
            "id": call.id,
            "name": self.showing.line(call.name),
            "arguments": self.showing.value(call.arguments),
            "result": result,
            "status": status,
            "position": answer.position if answer else None,
        }

    def _parts(self, message: object, position: int) -> Iterable[dict[str, Any]]:
        here = f"{self.transcript.path}/{position}"
        for path, part in shown_parts(parts_in(message)):
            yield {**self._part(part), "path": here + path}

    def _part(self, part: Part) -> dict[str, Any]:
        if isinstance(part, Media):
            return media_document(part, self.showing)
        if isinstance(part, Thought):
            shown = self.showing.text(part.text)
            size = len(part.text.encode(errors="replace"))
            return {"kind": "thinking", "media": "", "bytes": size, "text": shown}
        source = part.source
        size = len(as_text(source))
        return {"kind": kind_of(fields_of(source)), "media": "", "bytes": size}


def media_document(part: Media, showing: Showing) -> dict[str, Any]:
    """A picture, sound or file without its bytes."""
    return {
        "kind": part.kind,
        "media": part.mime_type,
        "bytes": len(part.base64.rstrip("=")) * 3 // 4,
        "name": showing.line(part.name),
        "url": showing.line(part.url, 2_000) if part.url else None,
    }


def parts_in(message: object) -> Iterable[tuple[str, Part]]:
    """The parts of a message that are not plain text and no calls, with their paths."""
    fields = fields_of(message)
    content = fields.get("content")
    for index, block in enumerate(parts_of(content)):
        if kind_of(fields_of(block)) not in _CALL_BLOCKS:
            yield pointer(("content", index)), part_of(block)
    for index, entry in enumerate(parts_of(fields.get("attachments"))):
        yield pointer(("attachments", index)), attachment_part(entry)
    if not isinstance(fields.get("role"), str) and kind_of(fields) == "reasoning":
        yield from (("", part) for part in contents_of(message))


def shown_parts(parts: Iterable[tuple[str, Part]]) -> Iterable[tuple[str, Part]]:
    """The parts of a message that are shown beside its text."""
    for path, part in parts:
        is_other = isinstance(part, Other) and kind_of(fields_of(part.source))
        if isinstance(part, Media | Thought) or is_other:
            yield path, part


def _own_result(message: object, id_: str) -> Mapping[str, object]:
    calls = map(fields_of, parts_of(fields_of(message).get("tool_calls")))
    return next((call for call in calls if call.get("id") == id_), EMPTY)


def _all_answers(messages: Mapping[int, object]) -> dict[tuple[str, int], Answer]:
    """Answers by a call's id and its message's position; ids may be used again."""
    found: dict[tuple[str, int], Answer] = {}
    waiting: dict[str, int] = {}
    for position, message in messages.items():
        for id_ in answers_of(message):
            asked = waiting.pop(id_, None)
            if asked is not None:
                failed = is_failed_result(message)
                answer = Answer(position, _text_for(message, id_), failed)
                found[id_, asked] = answer
        waiting.update((c.id, position) for c in calls_of(message) if not c.answered)
    return found


def _text_for(message: object, id_: str) -> str:
    """The text of the result of one call; a message may have those of several."""
    blocks = [
        block
        for block in map(fields_of, parts_of(fields_of(message).get("content")))
        if block.get("tool_use_id") == id_
    ]
    return text_of(blocks[0]) if blocks else text_of(message)
