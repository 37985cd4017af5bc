"""Transcripts with everything that providers' messages can have, and what they say."""

from __future__ import annotations

import copy
import json
from itertools import count, groupby
from typing import Any

from hypothesis import strategies as st

from holdfast import Message, ToolCall
from holdfast.operations.transcripts import answers_of, calls_of
from inner.messages import role_of, stored, text_of
from support.transcripts import nonsense

TEXTS = st.text(min_size=1, max_size=8).filter(lambda text: text.strip())
ARGUMENTS = st.dictionaries(
    st.text(max_size=3), st.none() | st.integers(0, 9) | st.text(max_size=3), max_size=2
)
PNG = "iVBORw0KGgo="


# --- messages of each dialect ---------------------------------------------------------


def chat_user(draw: st.DrawFn) -> list[Any]:
    parts = [
        {"type": "text", "text": draw(TEXTS)} for _ in range(draw(st.integers(1, 2)))
    ]
    image = {"url": f"data:image/png;base64,{PNG}", "detail": "high"}
    parts += draw(st.sampled_from([[], [{"type": "image_url", "image_url": image}]]))
    content = draw(st.sampled_from([draw(TEXTS), parts]))
    return [{"role": "user", "content": content, **draw(NAMES)}]


NAMES = st.sampled_from([{}, {"name": "ann"}])


def anthropic_user(draw: st.DrawFn) -> list[Any]:
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    cached = {"cache_control": {"type": "ephemeral"}}
    parts = [
        {"type": "text", "text": draw(TEXTS), **draw(st.sampled_from([{}, cached]))},
        {"type": "image", "source": source},
    ]
    content = draw(st.sampled_from([draw(TEXTS), parts[:1], parts]))
    return [{"role": "user", "content": content}]


def responses_user(draw: st.DrawFn) -> list[Any]:
    image = {"type": "input_image", "detail": "low", "image_url": "https://a.example/b"}
    content = [{"type": "input_text", "text": draw(TEXTS)}, image]
    kind = draw(st.sampled_from([{}, {"type": "message"}]))
    return [{**kind, "role": "user", "content": draw(st.sampled_from(["a", content]))}]


def our_user(draw: st.DrawFn) -> list[Any]:
    return [Message.user(draw(TEXTS), name=draw(st.sampled_from([None, "ann", "a b"])))]


def chat_reply(draw: st.DrawFn, ids: list[str]) -> list[Any]:
    said = draw(TEXTS)
    if not ids:
        refused = {"role": "assistant", "content": None, "refusal": said}
        plain = {"role": "assistant", "content": said, **draw(NAMES)}
        return [draw(st.sampled_from([refused, plain]))]
    calls = [
        {
            "id": id_,
            "type": "function",
            "function": {"name": "look", "arguments": json.dumps(draw(ARGUMENTS))},
        }
        for id_ in ids
    ]
    free = {"name": "run", "input": draw(TEXTS)}
    if draw(st.booleans()):
        calls[0] = {"id": ids[0], "type": "custom", "custom": free}
    content = draw(st.sampled_from([None, said, [{"type": "text", "text": said}]]))
    answers = [
        {"role": "tool", "tool_call_id": id_, "content": draw(TEXTS)} for id_ in ids
    ]
    return [{"role": "assistant", "content": content, "tool_calls": calls}, *answers]


def anthropic_reply(draw: st.DrawFn, ids: list[str]) -> list[Any]:
    thinking = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    parts = draw(st.sampled_from([[], thinking]))
    parts = [*parts, {"type": "text", "text": draw(TEXTS)}]
    if not ids:
        return [{"role": "assistant", "content": parts}]
    uses = [
        {"type": "tool_use", "id": id_, "name": "look", "input": draw(ARGUMENTS)}
        for id_ in ids
    ]
    results = [_anthropic_result(draw, id_) for id_ in ids]
    return [
        {"role": "assistant", "content": [*parts, *uses]},
        {"role": "user", "content": results},
        {"role": "assistant", "content": draw(TEXTS)},
    ]


def _anthropic_result(draw: st.DrawFn, id_: str) -> dict[str, Any]:
    text = draw(TEXTS)
    content = draw(st.sampled_from([text, [{"type": "text", "text": text}]]))
    result = {"type": "tool_result", "tool_use_id": id_, "content": content}
    return result | draw(st.sampled_from([{}, {"is_error": True}]))


def responses_reply(draw: st.DrawFn, ids: list[str]) -> list[Any]:
    items: list[Any] = [{"type": "reasoning", "id": "rs_1", "summary": []}]
    items *= draw(st.integers(0, 1))
    said = {"type": "output_text", "text": draw(TEXTS), "annotations": []}
    message = {"type": "message", "role": "assistant", "content": [said]}
    items += [message | {"id": "msg_1", "status": "completed"}]
    calls: list[Any] = [
        {
            "type": "function_call",
            "call_id": id_,
            "name": "look",
            "arguments": json.dumps(draw(ARGUMENTS)),
        }
        for id_ in ids
    ]
    outputs = [
        {"type": "function_call_output", "call_id": id_, "output": draw(TEXTS)}
        for id_ in ids
    ]
    if ids and draw(st.booleans()):
        free = {"type": "custom_tool_call", "call_id": ids[0]}
        calls[0] = {**free, "name": "run", "input": draw(TEXTS)}
        outputs[0] |= {"type": "custom_tool_call_output"}
    return [*items, *calls, *outputs]


def our_reply(draw: st.DrawFn, ids: list[str]) -> list[Any]:
    calls = [ToolCall(id=id_, name="look", arguments=draw(ARGUMENTS)) for id_ in ids]
    said = Message.assistant(draw(TEXTS), tool_calls=calls, reasoning="hm")
    inside = draw(st.integers(0, len(calls)))
    for call in calls[:inside]:
        call.status = draw(st.sampled_from(["completed", "failed"]))
        call.result = draw(st.sampled_from([{"n": 1}, "text", 5, None]))
    results = [Message.tool_result(call, draw(TEXTS)) for call in calls[inside:]]
    return [said, *results]


USERS = {
    "chat": chat_user,
    "anthropic": anthropic_user,
    "responses": responses_user,
    "ours": our_user,
}
REPLIES = {
    "chat": chat_reply,
    "anthropic": anthropic_reply,
    "responses": responses_reply,
    "ours": our_reply,
}


@st.composite
def rich_transcripts(draw: st.DrawFn, dialects: tuple[str, ...] = tuple(USERS)):
    """A valid transcript of messages in these dialects."""
    numbers = count()
    role = draw(st.sampled_from(["system", "developer"]))
    messages: list[Any] = [{"role": role, "content": draw(TEXTS)}]
    messages *= draw(st.integers(0, 1)) if "anthropic" not in dialects[:1] else 0
    for _ in range(draw(st.integers(1, 3))):
        messages += USERS[draw(st.sampled_from(dialects))](draw)
        ids = [f"call_{next(numbers)}" for _ in range(draw(st.integers(0, 3)))]
        messages += REPLIES[draw(st.sampled_from(dialects))](draw, ids)
    return messages


@st.composite
def spoiled_transcripts(draw: st.DrawFn):
    """A transcript in which some values are lost or are something else."""
    messages = [copy.deepcopy(stored(m)) for m in draw(rich_transcripts())]
    for _ in range(draw(st.integers(1, 4))):
        inner: Any = draw(st.sampled_from(messages))
        while inner:
            names = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            name = draw(st.sampled_from(names))
            if isinstance(inner[name], dict | list) and draw(st.integers(0, 3)):
                inner = inner[name]
                continue
            if draw(st.booleans()):
                inner[name] = draw(nonsense)
            else:
                del inner[name]
            break
    return messages


# --- what a transcript says -----------------------------------------------------------


def said(messages: list[Any]) -> list[tuple[Any, ...]]:
    """Who says what, calls what and hears what, as Holdfast reads it.

    The system's words come first, and what one side says at once is one text.
    """
    events = [event for message in messages for event in _events(stored(message))]
    system = [event for event in events if event[0] == "system"]
    others = [event for event in events if event[0] != "system"]
    found: list[tuple[Any, ...]] = []
    for side, group in groupby([*system, *others], lambda event: event[0]):
        together = list(group)
        texts = "\n".join(event[1] for event in together if len(event) == 2)
        found += [(side, texts)] if texts else []
        found += [event for event in together if len(event) > 2]
    return found


def _events(message: dict[str, Any]) -> list[tuple[Any, ...]]:
    role = role_of(message)
    if message.get("role") == "user" and answers_of(message):
        return _block_events(message)
    if role == "tool":
        told = _told(message.get("content", message.get("output")))
        return [("tool", id_, told) for id_ in answers_of(message)]
    text = text_of({n: v for n, v in message.items() if n != "tool_calls"})
    calls = [
        ("assistant", call.id, call.name, _arguments(call.arguments))
        for call in calls_of(message)
    ]
    known = [
        ("tool", call["id"], _told(call.get("result")))
        for call in message.get("tool_calls", [])
        if call.get("status") in {"completed", "failed"}
    ]
    return [*([(role, text)] if text else []), *calls, *known]


def _block_events(message: dict[str, Any]) -> list[tuple[Any, ...]]:
    results, rest = [], []
    for block in message["content"]:
        alone = {"role": "user", "content": [block]}
        results += [("tool", id_, text_of(alone)) for id_ in answers_of(alone)]
        rest += [] if answers_of(alone) else [("user", text_of(alone))]
    return [*results, *(event for event in rest if event[1])]


def _arguments(arguments: Any) -> Any:
    """Anthropic has no other arguments than objects."""
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}


def _told(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    parts = isinstance(value, list) and all(isinstance(v, dict) for v in value)
    if parts and all("type" in part for part in value):
        return text_of({"role": "tool", "content": value})
    return json.dumps(value, separators=(",", ":"))
