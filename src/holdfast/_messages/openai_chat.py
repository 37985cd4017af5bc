"""Transcripts for OpenAI's Chat Completions, and for servers that are compatible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast._messages.names import is_speaker, tool_name
from holdfast._messages.parts import (
    Call,
    Media,
    Part,
    Thought,
    shortest,
    text_in_place_of,
)
from holdfast._messages.shapes import (
    Fields,
    Shape,
    Shapes,
    each,
    either,
    fit_part,
    is_fields,
    is_list,
    is_none,
    is_text,
    one_of,
    shaped,
    typed,
)
from holdfast._messages.turns import ReadMessage, Turn, joined

# --- what OpenAI accepts --------------------------------------------------------------

_FUNCTION = Shape({"name": is_text, "arguments": is_text}, closed=True)
_CUSTOM = Shape({"name": is_text, "input": is_text}, closed=True)
_FILE = Shape({}, {"file_data": is_text, "file_id": is_text, "filename": is_text})
# Closed, since Anthropic has parts of this type too, with other fields.
_TEXT = {
    "text": Shape(
        {"type": is_text, "text": is_text},
        {"prompt_cache_breakpoint": is_fields},
        closed=True,
    )
}
_ASKED = {
    **_TEXT,
    "image_url": Shape({"image_url": shaped(Shape({"url": is_text}))}),
    "input_audio": Shape(
        {
            "input_audio": shaped(
                Shape({"data": is_text, "format": one_of("wav", "mp3")})
            )
        }
    ),
    "file": Shape({"file": shaped(_FILE)}),
}
_REPLIED = {**_TEXT, "refusal": Shape({"refusal": is_text})}
_PARTS: dict[str, Shapes] = {"user": _ASKED, "assistant": _REPLIED}
# Closed: a call from a stream has its place in it, which is no field of a request.
_CALLS = {
    "function": Shape(
        {"type": is_text, "id": is_text, "function": shaped(_FUNCTION)},
        {"extra_content": is_fields},  # what Gemini wants back
        closed=True,
    ),
    "custom": Shape(
        {"type": is_text, "id": is_text, "custom": shaped(_CUSTOM)}, closed=True
    ),
}


def _message(role: str, parts: Shapes) -> Shape:
    tests = {"role": one_of(role), "content": either(is_text, each(typed(parts)))}
    return Shape(tests, {"name": is_speaker}, closed=True)


_NATIVE = {
    "system": _message("system", _TEXT),
    "developer": _message("developer", _TEXT),
    "user": _message("user", _ASKED),
    "tool": Shape(
        {
            "role": one_of("tool"),
            "tool_call_id": is_text,
            "content": either(is_text, each(typed(_TEXT))),
        },
        closed=True,
    ),
    "function": Shape(
        {
            "role": one_of("function"),
            "name": is_text,
            "content": either(is_text, is_none),
        },
        closed=True,
    ),
    "assistant": Shape(
        {"role": one_of("assistant")},
        {
            "content": either(is_text, is_none, each(typed(_REPLIED))),
            "name": is_speaker,
            "refusal": either(is_text, is_none),
            "audio": either(is_none, shaped(Shape({"id": is_text}, closed=True))),
            "tool_calls": each(typed(_CALLS)),
            "function_call": either(is_none, shaped(_FUNCTION)),
            # Compatible servers want their reasoning back.
            "reasoning_content": either(is_text, is_none),
            "reasoning_details": is_list,
        },
        closed=True,
    ),
}
_SAYING = ("content", "refusal", "audio", "tool_calls", "function_call")


def _native(message: Fields) -> Fields | None:
    """A message that OpenAI accepts as it is."""
    role = message.get("role")
    shape = _NATIVE.get(role) if isinstance(role, str) else None
    found = shape.fit(message) if shape else None
    if found is None or role != "assistant":
        return found
    said = [found.get(name) for name in _SAYING]
    return found if any(value is not None for value in said) else None


# --- writing --------------------------------------------------------------------------


def write(transcript: Iterable[ReadMessage]) -> list[Fields]:
    """The messages; media in results follow the results in a message of the user."""
    found: list[Fields] = []
    shown: list[Fields] = []
    for message, media in _messages(transcript):
        if shown and message["role"] != "tool":
            found.append({"role": "user", "content": shown})
            shown = []
        found.append(message)
        shown = [*shown, *media]
    return [*found, {"role": "user", "content": shown}] if shown else found


def _messages(
    transcript: Iterable[ReadMessage],
) -> Iterator[tuple[Fields, list[Fields]]]:
    """The messages, each with the media that do not fit into it."""
    for each_ in joined(transcript):
        native = _native(each_.message)
        if native is not None:
            yield native, []
            continue
        for turn in each_.turns:
            yield from _written(turn)


def _written(turn: Turn) -> Iterator[tuple[Fields, list[Fields]]]:
    if turn.role == "tool":
        yield _result(turn)
    elif turn.role == "assistant":
        if not turn.is_silent:
            yield _reply(turn), []
    else:
        content = shortest(_fitting(turn.parts, turn.role))
        yield {"role": turn.role, "content": content, **_name(turn)}, []


def _name(turn: Turn) -> dict[str, object]:
    return {"name": turn.name} if is_speaker(turn.name) else {}


def _reply(turn: Turn) -> Fields:
    parts = _fitting(turn.parts, "assistant")
    calls = [_call(part) for part in turn.parts if isinstance(part, Call)]
    said = {"role": "assistant", "content": shortest(parts), **_name(turn)}
    if not calls:
        return said
    return {**said, "content": said["content"] or None, "tool_calls": calls}


def _result(turn: Turn) -> tuple[Fields, list[Fields]]:
    parts = [part for part in turn.parts if not _is_shown(part)]
    content = shortest(_fitting(parts, "tool"))
    shown = _fitting([part for part in turn.parts if _is_shown(part)], "user")
    if shown:
        text = f"The result of the call {turn.call_id}:"
        shown.insert(0, {"type": "text", "text": text})
    return {"role": "tool", "tool_call_id": turn.call_id, "content": content}, shown


def _is_shown(part: Part) -> bool:
    return isinstance(part, Media) and _media(part) is not None


def _fitting(parts: Iterable[Part], role: str) -> list[Fields]:
    shapes = _PARTS.get(role, _TEXT)
    return [
        _part(part, shapes) for part in parts if not isinstance(part, Call | Thought)
    ]


def _part(part: Part, shapes: Shapes) -> Fields:
    assert not isinstance(part, Call | Thought)
    native = fit_part(shapes, part.source)
    made = _media(part) if isinstance(part, Media) and shapes is _ASKED else None
    return native or made or {"type": "text", "text": text_in_place_of(part)}


def _media(part: Media) -> Fields | None:
    if part.kind == "image" and not part.file_id:
        return {"type": "image_url", "image_url": {"url": part.data_url}}
    if part.kind == "audio" and part.base64:
        format_ = _AUDIO.get(part.mime_type)
        audio = {"data": part.base64, "format": format_}
        return {"type": "input_audio", "input_audio": audio} if format_ else None
    return _file(part) if part.kind == "file" and not part.url else None


_AUDIO = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}


def _file(part: Media) -> Fields:
    if part.file_id:
        return {"type": "file", "file": {"file_id": part.file_id}}
    named = {"file_data": part.data_url, "filename": part.name or "file"}
    return {"type": "file", "file": named}


def _call(part: Call) -> Fields:
    native = fit_part(_CALLS, part.source)
    if native is not None:
        return native
    name = tool_name(part.call.name)
    if part.is_free:
        custom = {"name": name, "input": part.text}
        return {"id": part.call.id, "type": "custom", "custom": custom}
    function = {"name": name, "arguments": part.text}
    return {"id": part.call.id, "type": "function", "function": function}
