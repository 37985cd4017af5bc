"""Messages of any provider as turns, from which each dialect is written.

A turn is what one side says at once, or the result of one tool call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, takewhile

import msgspec
from msgspec.structs import replace

from holdfast._messages.dialects import is_item
from holdfast._messages.loose import EMPTY, fields_of, kind_of, parts_of
from holdfast._messages.parts import (
    Call,
    Other,
    Part,
    Text,
    Thought,
    attachment_part,
    call_part,
    contents_of,
    part_of,
    result_of_tool,
)
from holdfast._messages.shapes import Fields
from holdfast._messages.transcript import answers_of, is_call_item, role_of

SYSTEM = frozenset({"system", "developer"})
ROLES = frozenset({"user", "assistant", "tool", *SYSTEM})

# The roles of other formats. Any other role becomes a user.
_ALIASES = {"model": "assistant", "ai": "assistant"}
_ABOUT = frozenset({"role", "name", "type", "id", "status"})
_THOUGHTS = ("reasoning", "reasoning_content")


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """The words of one side, or the result of the call ``call_id``.

    ``is_item`` means that it is one of several items of a reply.
    """

    role: str
    parts: list[Part]
    name: str = ""
    call_id: str = ""
    is_error: bool = False
    is_item: bool = False
    source: Fields = EMPTY

    @property
    def is_silent(self) -> bool:
        """True if there is only reasoning, which no other provider takes."""
        return bool(self.parts) and all(isinstance(p, Thought) for p in self.parts)


class ReadMessage(msgspec.Struct, frozen=True):
    """A message and its turns: several if it has results of several calls."""

    message: Fields
    turns: list[Turn]

    @property
    def answers(self) -> set[str]:
        """The ids of the calls it has results of."""
        return {turn.call_id for turn in self.turns if turn.call_id}


def read(messages: Sequence[Fields]) -> list[ReadMessage]:
    """The turns of each message, with results that stand in the calls themselves."""
    found = [ReadMessage(message, list(_turns(message))) for message in messages]
    for position, each in enumerate(found):
        known = _inline_results(each.message)
        if known:
            answered = _answered_after(found, position)
            each.turns.extend(turn for turn in known if turn.call_id not in answered)
    return found


def joined(transcript: Iterable[ReadMessage]) -> Iterator[ReadMessage]:
    """The same messages, with the items of one reply as one turn."""
    for is_reply, group in groupby(transcript, _is_reply_item):
        if is_reply:
            parts = [part for each in group for t in each.turns for part in t.parts]
            yield ReadMessage(EMPTY, [Turn(role="assistant", parts=parts)])
        else:
            yield from group


def _is_reply_item(each: ReadMessage) -> bool:
    return all(turn.is_item for turn in each.turns)


def _answered_after(found: list[ReadMessage], position: int) -> set[str]:
    later = (found[n] for n in range(position + 1, len(found)))
    following = takewhile(lambda each: each.answers, later)
    return {id_ for each in following for id_ in each.answers}


def _inline_results(message: Fields) -> list[Turn]:
    """The results of calls that have a status of their own, of a `ToolCall`."""
    entries = map(fields_of, parts_of(message.get("tool_calls")))
    return [
        _result(part.call.id, entry.get("result"), is_error=entry["status"] == "failed")
        for entry in entries
        if isinstance(part := call_part(entry), Call) and part.call.answered
    ]


def _result(
    id_: str, content: object, *, is_error: bool, source: Fields = EMPTY
) -> Turn:
    parts = result_of_tool(content)
    return Turn(role="tool", parts=parts, call_id=id_, is_error=is_error, source=source)


def _turns(message: Fields) -> Iterator[Turn]:
    ids = answers_of(message)
    if not isinstance(message.get("role"), str):
        yield _item(message, ids)
    elif message.get("role") == "user":
        yield from _results_and_rest(message)
    elif ids:
        is_error = fields_of(message.get("metadata")).get("is_error") is True
        found = _result(ids[0], message.get("content"), is_error=is_error)
        yield replace(found, parts=[*found.parts, *_attachments(message)])
    else:
        yield _speech(message)


def _item(message: Fields, ids: list[str]) -> Turn:
    """An item of OpenAI Responses, or a mapping that no provider has."""
    if ids:
        return _result(ids[0], message.get("output"), is_error=False, source=message)
    part = call_part(message) if is_call_item(message) else part_of(message)
    role = "assistant" if role_of(message) == "assistant" else "user"
    return Turn(role=role, parts=[part], is_item=is_item(message), source=message)


def _results_and_rest(message: Fields) -> Iterator[Turn]:
    """The results among the blocks of a user message, then its other blocks."""
    rest: list[object] = []
    for block in parts_of(message.get("content")):
        ids = answers_of({"role": "user", "content": [block]})
        fields = fields_of(block)
        if ids:
            is_error = fields.get("is_error") is True
            content = fields.get("content")
            yield _result(ids[0], content, is_error=is_error, source=fields)
        else:
            rest.append(block)
    if not answers_of(message):
        yield _speech(message)
    elif rest or message.get("attachments"):
        yield _speech({**message, "content": rest})


def _speech(message: Fields) -> Turn:
    role, name = message["role"], message.get("name")
    assert isinstance(role, str)
    role = _ALIASES.get(role, role)
    # A result that does not name its call becomes a message of the user.
    role = role if role in ROLES - {"tool"} else "user"
    parts = [*_parts(message, role), *_parts_beside(message, role)]
    return Turn(
        role=role,
        parts=parts or _unknown_parts(message),
        name=name if isinstance(name, str) else "",
        is_item=role == "assistant" and is_item(message),
        source=message,
    )


def _parts(message: Fields, role: str) -> list[Part]:
    """The parts of the content, without calls that are also listed beside it."""
    contents = contents_of(message.get("content"))
    if role != "assistant":
        return contents
    listed = {part.call.id for part in _calls(message) if isinstance(part, Call)}
    found = [_use(part) for part in contents]
    return [p for p in found if not (isinstance(p, Call) and p.call.id in listed)]


def _unknown_parts(message: Fields) -> list[Part]:
    """The parts of a message of another format, such as the ``parts`` of Gemini."""
    if "content" in message or "holdfast" in message:
        return []
    others = {n: v for n, v in message.items() if n not in _ABOUT}
    return contents_of(others.pop("parts", None)) + ([Other(others)] if others else [])


def _use(part: Part) -> Part:
    is_use = kind_of(fields_of(part.source)) == "tool_use"
    return call_part(part.source) if is_use else part


def _parts_beside(message: Fields, role: str) -> Iterator[Part]:
    """The parts of a message in other fields than its content."""
    yield from _attachments(message)
    if role != "assistant":
        yield from map(Other, parts_of(message.get("tool_calls")))
        return
    for text in map(message.get, _THOUGHTS):
        if isinstance(text, str) and text:
            yield Thought(text)
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        yield Text(refusal, {"type": "refusal", "refusal": refusal})
    spoken = fields_of(message.get("audio")).get("transcript")
    if isinstance(spoken, str):
        yield Text(spoken)
    elif message.get("audio"):
        yield Other({"audio": message["audio"]})
    if message.get("function_call"):
        yield Other({"function_call": message["function_call"]})
    yield from _calls(message)


def _attachments(message: Fields) -> list[Part]:
    return [attachment_part(entry) for entry in parts_of(message.get("attachments"))]


def _calls(message: Fields) -> list[Part]:
    return [call_part(entry) for entry in parts_of(message.get("tool_calls"))]
