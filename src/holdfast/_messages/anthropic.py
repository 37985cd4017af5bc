"""Transcripts for Anthropic's Messages: the system prompt apart, and turns in turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from holdfast._messages.loose import fields_of, kind_of, parts_of
from holdfast._messages.names import anthropic_id, is_anthropic_id, tool_name
from holdfast._messages.parts import (
    Call,
    Media,
    Other,
    Part,
    Text,
    Thought,
    shortest,
    text_in_place_of,
)
from holdfast._messages.shapes import (
    Fields,
    Shape,
    Test,
    each,
    either,
    fit_part,
    is_bool,
    is_fields,
    is_list,
    is_none,
    is_text,
    one_of,
    shaped,
    to_json,
    typed,
)
from holdfast._messages.turns import SYSTEM, ReadMessage, Turn

# --- what Anthropic accepts -----------------------------------------------------------


def _says_something(value: object) -> bool:
    """False for an empty text: Anthropic refuses it."""
    return isinstance(value, str) and bool(value.strip())


def _source(kind: str, **required: Test) -> Test:
    return shaped(Shape({"type": one_of(kind), **required}))


_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_PDF = "application/pdf"
_LINKED = (_source("url", url=is_text), _source("file", file_id=is_text))
# Closed, since OpenAI has parts of this type too, with other fields.
_TEXT = {
    "text": Shape(
        {"type": is_text, "text": _says_something},
        {
            "cache_control": either(is_fields, is_none),
            "citations": either(is_list, is_none),
        },
        closed=True,
    )
}
_SHOWN = {
    **_TEXT,
    "image": Shape(
        {
            "source": either(
                _source("base64", media_type=one_of(*_IMAGES), data=is_text), *_LINKED
            )
        }
    ),
    "document": Shape(
        {
            "source": either(
                _source("base64", media_type=one_of(_PDF), data=is_text),
                _source("text", media_type=one_of("text/plain"), data=is_text),
                _source("content", content=either(is_text, is_list)),
                *_LINKED,
            )
        }
    ),
    "search_result": Shape(
        {"source": is_text, "title": is_text, "content": each(typed(_TEXT))}
    ),
}
_RESULT = "tool_result"
_RETURNED = {**_SHOWN, "tool_reference": Shape({"tool_name": is_text})}
_RESULT_SHAPE = Shape(
    {"tool_use_id": is_anthropic_id},
    {
        "content": either(is_text, each(typed(_RETURNED))),
        "is_error": is_bool,
    },
)
_UPLOAD = {"container_upload": Shape({"file_id": is_text})}
_USE = Shape({"id": is_anthropic_id, "name": is_text, "input": is_fields})
_SERVER_RESULT = Shape({"tool_use_id": is_text, "content": either(is_list, is_fields)})
_REPLIED = {
    **_TEXT,
    "thinking": Shape({"thinking": is_text, "signature": _says_something}),
    "redacted_thinking": Shape({"data": is_text}),
    "tool_use": _USE,
    "server_tool_use": Shape({"id": is_text, "name": is_text, "input": is_fields}),
    "web_search_tool_result": _SERVER_RESULT,
    "web_fetch_tool_result": _SERVER_RESULT,
    "code_execution_tool_result": _SERVER_RESULT,
    "bash_code_execution_tool_result": _SERVER_RESULT,
    "text_editor_code_execution_tool_result": _SERVER_RESULT,
    "tool_search_tool_result": _SERVER_RESULT,
    **_UPLOAD,
}
_PARTS = {"user": {**_SHOWN, **_UPLOAD}, "assistant": _REPLIED}
_NATIVE = {
    role: Shape(
        {
            "role": one_of(role),
            "content": either(_says_something, each(typed(parts))),
        },
        closed=True,
    )
    for role, parts in {
        "user": {**_PARTS["user"], _RESULT: _RESULT_SHAPE},
        "assistant": _REPLIED,
    }.items()
}

# --- writing --------------------------------------------------------------------------


def write(transcript: Iterable[ReadMessage]) -> dict[str, object]:
    """The arguments ``system``, if there is one, and ``messages`` of a request."""
    system: list[object] = []
    messages: list[Fields] = []
    for role, content in _contents(transcript):
        if role == "system":
            system.append(content)
        elif messages and messages[-1]["role"] == role:
            joined = [*_blocks(messages[-1]["content"]), *_blocks(content)]
            messages[-1] = {"role": role, "content": joined}
        else:
            messages.append({"role": role, "content": content})
    ordered = [{**each_, "content": _ordered(each_["content"])} for each_ in messages]
    return {**_system(system), "messages": ordered}


def _system(contents: list[object]) -> dict[str, object]:
    if not contents:
        return {}
    if len(contents) == 1:
        return {"system": contents[0]}
    return {"system": [block for content in contents for block in _blocks(content)]}


def _blocks(content: object) -> list[object]:
    return [_text(content)] if isinstance(content, str) else parts_of(content)


def _text(text: str) -> Fields:
    return {"type": "text", "text": text}


def _ordered(content: object) -> object:
    """Results come first in the message after their calls."""
    if isinstance(content, str):
        return content
    return sorted(parts_of(content), key=lambda p: kind_of(fields_of(p)) != _RESULT)


def _contents(transcript: Iterable[ReadMessage]) -> Iterator[tuple[str, object]]:
    """The roles and contents that say something, in order."""
    for each_ in transcript:
        native = [shape.fit(each_.message) for shape in _NATIVE.values()]
        found = next((fields for fields in native if fields is not None), None)
        if found is not None:
            yield cast("str", found["role"]), found["content"]
            continue
        for turn in each_.turns:
            content = _content(turn)
            if content:
                yield _role(turn), content


def _role(turn: Turn) -> str:
    if turn.role in SYSTEM:
        return "system"
    return "user" if turn.role == "tool" else turn.role


def _content(turn: Turn) -> object:
    if turn.role == "tool":
        return [_result(turn)]
    return shortest(list(_parts(turn.parts, _PARTS.get(turn.role, _TEXT))))


def _parts(parts: Iterable[Part], shapes: dict[str, Shape]) -> Iterator[Fields]:
    for part in parts:
        native = fit_part(shapes, part.source)
        if native is not None:
            yield native
        elif isinstance(part, Call):
            yield _use(part)
        elif not isinstance(part, Thought):
            yield from _made(part, shapes)


def _made(part: Text | Media | Other, shapes: dict[str, Shape]) -> Iterator[Fields]:
    media = _media(part) if isinstance(part, Media) and "image" in shapes else None
    text = text_in_place_of(part)
    if media is not None or text.strip():
        yield media or _text(text)


def _media(part: Media) -> Fields | None:
    is_pdf = part.mime_type == _PDF or part.url.endswith(".pdf")
    if part.file_id or not (is_pdf or part.kind == "image"):
        return None
    kind = "document" if is_pdf else "image"
    if part.url:
        return {"type": kind, "source": {"type": "url", "url": part.url}}
    mime_type = "image/jpeg" if part.mime_type == "image/jpg" else part.mime_type
    if mime_type not in {_PDF, *_IMAGES}:
        return None
    source = {"type": "base64", "media_type": mime_type, "data": part.base64}
    return {"type": kind, "source": source}


def _use(part: Call) -> Fields:
    arguments: object = to_json(part.call.arguments)
    if not is_fields(arguments):
        # Anthropic takes an object only.
        arguments = {"arguments": arguments}
    id_, name = anthropic_id(part.call.id), tool_name(part.call.name)
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}


def _result(turn: Turn) -> Fields:
    if kind_of(turn.source) == _RESULT and shaped(_RESULT_SHAPE)(turn.source):
        return turn.source
    block: dict[str, object] = {
        "type": _RESULT,
        "tool_use_id": anthropic_id(turn.call_id),
        "content": shortest(list(_parts(turn.parts, _RETURNED))),
    }
    return {**block, "is_error": True} if turn.is_error else block
