"""Transcripts for OpenAI's Responses: a list of items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from holdfast._messages.loose import kind_of
from holdfast._messages.names import tool_name
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
    Shapes,
    Test,
    each,
    either,
    every,
    fit_part,
    is_anything,
    is_bool,
    is_fields,
    is_list,
    is_none,
    is_text,
    one_of,
    typed,
)
from holdfast._messages.turns import ReadMessage, Turn

# --- what OpenAI accepts --------------------------------------------------------------

_STATUS = one_of("in_progress", "completed", "incomplete")
_NULL_OR_TEXT = either(is_text, is_none)
_GIVEN = {
    "input_text": Shape({"text": is_text}),
    "input_image": Shape(
        {"detail": one_of("low", "high", "auto", "original")},
        {"image_url": _NULL_OR_TEXT, "file_id": _NULL_OR_TEXT},
    ),
    "input_file": Shape(
        {},
        {
            "file_data": is_text,
            "file_url": is_text,
            "filename": is_text,
            "file_id": _NULL_OR_TEXT,
        },
    ),
}
_SAID = {
    "output_text": Shape({"text": is_text, "annotations": every(is_fields)}),
    "refusal": Shape({"refusal": is_text}),
}
_THOUGHT = {
    "summary_text": Shape({"text": is_text}),
    "reasoning_text": Shape({"text": is_text}),
}
_CONTENT = either(is_text, each(typed(_GIVEN)))
_OUTPUT: dict[str, Test] = {"call_id": is_text, "output": _CONTENT}


def _item(required: Mapping[str, Test], **optional: Test) -> Shape:
    return Shape(required, {"id": is_text, "status": _STATUS, **optional})


def _hosted(*names: str) -> Shape:
    """An item of OpenAI's own tools, which no other program writes."""
    return Shape({"id": is_text} | dict.fromkeys(names, is_anything))


_ITEMS: Shapes = {
    "function_call": _item(
        {"call_id": is_text, "name": is_text, "arguments": is_text}, namespace=is_text
    ),
    "function_call_output": _item(_OUTPUT, name=_NULL_OR_TEXT, namespace=_NULL_OR_TEXT),
    "custom_tool_call": _item(
        {"call_id": is_text, "name": is_text, "input": is_text}, namespace=is_text
    ),
    "custom_tool_call_output": _item(_OUTPUT),
    "reasoning": _item(
        {"id": is_text, "summary": every(typed(_THOUGHT))},
        content=every(typed(_THOUGHT)),
        encrypted_content=_NULL_OR_TEXT,
    ),
    "shell_call": _item({"call_id": is_text, "action": is_fields}),
    "shell_call_output": _item({"call_id": is_text, "output": is_list}),
    "apply_patch_call": Shape(
        {"call_id": is_text, "operation": is_fields, "status": is_text}
    ),
    "apply_patch_call_output": Shape({"call_id": is_text, "status": is_text}),
    "computer_call": _hosted("call_id", "pending_safety_checks", "status"),
    "computer_call_output": _item({"call_id": is_text, "output": is_fields}),
    "local_shell_call": _hosted("call_id", "action", "status"),
    "local_shell_call_output": _hosted("output"),
    "web_search_call": _hosted("action", "status"),
    "file_search_call": _hosted("queries", "status"),
    "code_interpreter_call": _hosted("code", "container_id", "outputs", "status"),
    "image_generation_call": _hosted("result", "status"),
    "mcp_list_tools": _hosted("server_label", "tools"),
    "mcp_approval_request": _hosted("arguments", "name", "server_label"),
    "mcp_approval_response": Shape(
        {"approval_request_id": is_text, "approve": is_bool}
    ),
    "mcp_call": _hosted("arguments", "name", "server_label"),
    "tool_search_call": _hosted("arguments"),
    "tool_search_output": _hosted("tools"),
    "compaction": Shape({"encrypted_content": is_text}),
    "item_reference": _hosted(),
}
_MESSAGES = (
    Shape(
        {"role": one_of("user", "system", "developer"), "content": _CONTENT},
        {"type": one_of("message"), "status": _STATUS},
        closed=True,
    ),
    Shape(
        {"role": one_of("assistant"), "content": is_text},
        {
            "type": one_of("message"),
            "phase": either(is_none, one_of("commentary", "final_answer")),
        },
        closed=True,
    ),
    Shape(
        {
            "type": one_of("message"),
            "role": one_of("assistant"),
            "id": is_text,
            "status": _STATUS,
            "content": each(typed(_SAID)),
        }
    ),
)


def _native(message: Fields) -> Fields | None:
    """An item that OpenAI accepts as it is."""
    if not isinstance(message.get("role"), str):
        return fit_part(_ITEMS, message)
    fitting = (shape.fit(message) for shape in _MESSAGES)
    return next((found for found in fitting if found is not None), None)


# --- writing --------------------------------------------------------------------------


def write(transcript: Sequence[ReadMessage]) -> list[Fields]:
    """The items; OpenAI refuses reasoning without a following item: it is left out."""
    free = {id_ for each_ in transcript for t in each_.turns for id_ in _free_calls(t)}
    found: list[Fields] = []
    for each_ in transcript:
        native = _native(each_.message)
        if native is None:
            found += [item for turn in each_.turns for item in _items(turn, free)]
        else:
            found.append(native)
    kept: list[Fields] = []
    for item in reversed(found):
        if kind_of(item) != "reasoning" or (kept and _is_of_model(kept[-1])):
            kept.append(item)
    return kept[::-1]


def _free_calls(turn: Turn) -> Iterator[str]:
    for part in turn.parts:
        if isinstance(part, Call) and part.is_free:
            yield part.call.id


def _is_of_model(item: Fields) -> bool:
    if kind_of(item).endswith("_output"):
        return False
    return item.get("role") not in {"user", "system", "developer"}


def _items(turn: Turn, free: set[str]) -> Iterator[Fields]:
    if turn.role == "tool":
        is_free = turn.call_id in free
        kind = "custom_tool_call_output" if is_free else "function_call_output"
        output = _content(turn.parts)
        yield {"type": kind, "call_id": turn.call_id, "output": output}
    elif turn.role == "assistant":
        yield from _reply(turn)
    else:
        yield {"role": turn.role, "content": _content(turn.parts)}


def _reply(turn: Turn) -> Iterator[Fields]:
    """A message for neighbouring texts, since it takes one text, and the calls."""
    said = [part for part in turn.parts if not isinstance(part, Thought)]
    has_calls = any(isinstance(part, Call) for part in said)
    for is_call, parts in groupby(said, lambda part: isinstance(part, Call)):
        if is_call:
            yield from (_call(part) for part in parts if isinstance(part, Call))
            continue
        text = "\n".join(text_in_place_of(p) for p in parts if not isinstance(p, Call))
        if text or not has_calls:
            yield {"role": "assistant", "content": text}
    if not turn.parts:
        yield {"role": "assistant", "content": ""}


def _call(part: Call) -> Fields:
    about = {"call_id": part.call.id, "name": tool_name(part.call.name)}
    if part.is_free:
        return {"type": "custom_tool_call", **about, "input": part.text}
    return {"type": "function_call", **about, "arguments": part.text}


def _content(parts: Iterable[Part]) -> object:
    said = (part for part in parts if not isinstance(part, Call | Thought))
    return shortest([_part(part) for part in said])


def _part(part: Text | Media | Other) -> Fields:
    native = fit_part(_GIVEN, part.source)
    made = _media(part) if isinstance(part, Media) else None
    return native or made or {"type": "input_text", "text": text_in_place_of(part)}


def _media(part: Media) -> Fields | None:
    if part.kind == "image":
        where = {"file_id": part.file_id} if part.file_id else None
        where = where or {"image_url": part.data_url}
        return {"type": "input_image", "detail": "auto", **where}
    if part.kind != "file":
        return None
    if part.file_id or part.url:
        name = "file_id" if part.file_id else "file_url"
        return {"type": "input_file", name: part.file_id or part.url}
    named = {"filename": part.name or "file", "file_data": part.data_url}
    return {"type": "input_file", **named}
