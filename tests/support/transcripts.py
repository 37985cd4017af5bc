"""Transcripts in every dialect, ways to damage them, and what providers accept.

The rules are written down here once more, apart from the code that is tested.
"""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from hypothesis import strategies as st

Message = dict[str, Any]

DIALECTS = ("chat", "responses", "anthropic", "ours")
CALL_ITEMS = {"function_call", "custom_tool_call", "computer_call"}
TURN_ITEMS = {*CALL_ITEMS, "reasoning", "message"}


# --- what providers accept ------------------------------------------------------------


def problems(messages: list[Message]) -> list[str]:
    """Why a provider would refuse a transcript, each turn in its own dialect."""
    found: list[str] = []
    position = 0
    while position < len(messages):
        rule = _rule(messages[position])
        taken, wrong = rule(messages, position)
        found += [f"message {position}: {text}" for text in wrong]
        position += taken
    return found


def _rule(message: Message):
    if message.get("tool_calls"):
        return _chat_turn
    if message.get("type") in TURN_ITEMS and message.get("role") != "user":
        return _responses_turn
    if _blocks(message, "tool_use"):
        return _anthropic_turn
    return _no_turn


def _chat_turn(messages: list[Message], start: int) -> tuple[int, list[str]]:
    """An assistant message with tool_calls is followed by a tool message for each."""
    calls = messages[start]["tool_calls"]
    done = {c["id"] for c in calls if c.get("status") in {"completed", "failed"}}
    end = start + 1
    while end < len(messages) and messages[end].get("role") == "tool":
        end += 1
    answers = [m["tool_call_id"] for m in messages[start + 1 : end]]
    return end - start, _compared([c["id"] for c in calls], answers, done)


def _anthropic_turn(messages: list[Message], start: int) -> tuple[int, list[str]]:
    """All tool_use blocks have their results in the next message, before all else."""
    calls = [block["id"] for block in _blocks(messages[start], "tool_use")]
    following = messages[start + 1 : start + 2]
    if not following or following[0].get("role") != "user":
        return 1, [f"tool_use {calls} is not followed by a user message"]
    answers = _blocks(following[0], "tool_result")
    content = following[0]["content"]
    wrong = _compared(calls, [block["tool_use_id"] for block in answers], set())
    if list(content)[: len(answers)] != answers:
        wrong.append("the results are not the first blocks")
    return 2, wrong


def _responses_turn(messages: list[Message], start: int) -> tuple[int, list[str]]:
    """The items of a turn are followed by an output for each of its calls."""
    end = start
    while end < len(messages) and _is_turn_item(messages[end]):
        end += 1
    calls = [m["call_id"] for m in messages[start:end] if m["type"] in CALL_ITEMS]
    last = end
    while last < len(messages) and _is_output(messages[last]):
        last += 1
    answers = [message["call_id"] for message in messages[end:last]]
    return last - start, _compared(calls, answers, set())


def _no_turn(messages: list[Message], start: int) -> tuple[int, list[str]]:
    message = messages[start]
    is_stray = (
        message.get("role") == "tool"
        or _is_output(message)
        or _blocks(message, "tool_result")
    )
    wrong = ["a result without a call before it"] if is_stray else []
    if message.get("content") == [] or message.get("tool_calls") == []:
        wrong.append("an empty list")
    return 1, wrong


def _compared(calls: list[str], answers: list[str], done: set[str]) -> list[str]:
    wrong = [f"{id_} is not answered" for id_ in calls if id_ not in {*answers, *done}]
    wrong += [f"{id_} was not called" for id_ in answers if id_ not in calls]
    for what, ids in (("called", calls), ("answered", answers)):
        if len(set(ids)) != len(ids):
            wrong.append(f"{what} twice: {ids}")
    return wrong


def _is_turn_item(message: Message) -> bool:
    return message.get("type") in TURN_ITEMS and message.get("role") != "user"


def _is_output(message: Message) -> bool:
    return str(message.get("type")).endswith("_call_output")


def _blocks(message: Message, kind: str) -> list[Message]:
    content = message.get("content")
    parts = content if isinstance(content, list | tuple) else []
    return [p for p in parts if isinstance(p, dict) and p.get("type") == kind]


# --- transcripts ----------------------------------------------------------------------


def chat(ids: list[str], *, variant: int = 0) -> list[Message]:
    """A turn of OpenAI Chat that calls tools and hears of each."""
    calls = [
        {
            "id": id_,
            "type": "function",
            "function": {"name": "look", "arguments": json.dumps({"n": n})},
        }
        for n, id_ in enumerate(ids)
    ]
    asking: Message = {"role": "assistant", "content": "I look." if variant else None}
    asking |= {"tool_calls": calls} if calls else {"content": "Nothing to do."}
    answers = ids[::-1] if variant else ids
    return [
        asking,
        *(
            {"role": "tool", "tool_call_id": i, "content": f"{i} found"}
            for i in answers
        ),
    ]


def ours(ids: list[str], *, variant: int = 0) -> list[Message]:
    """A turn of messages as Holdfast's own records are stored."""
    calls = [{"id": i, "name": "look", "arguments": {"of": i}} for i in ids]
    if variant and calls:
        calls[0] |= {"status": "completed", "result": "found"}
        ids = ids[1:]
    mark = {"holdfast": 1}
    asking = {**mark, "role": "assistant", "id": "m1"}
    asking |= {"tool_calls": calls} if calls else {"content": "Nothing to do."}
    return [
        asking,
        *({**mark, "role": "tool", "tool_call_id": i, "content": "found"} for i in ids),
    ]


def anthropic(ids: list[str], *, variant: int = 0) -> list[Message]:
    """A turn of Anthropic, thinking before and talking behind the results."""
    before: list[Message] = [{"type": "thinking", "thinking": "hm", "signature": "s"}]
    behind: list[Message] = [{"type": "text", "text": "And another thing."}]
    uses = [{"type": "tool_use", "id": i, "name": "look", "input": {}} for i in ids]
    results = [
        {"type": "tool_result", "tool_use_id": i, "content": f"{i} found"} for i in ids
    ]
    asking = {
        "role": "assistant",
        "content": (before if variant else []) + (uses or behind),
    }
    if not ids:
        return [asking]
    return [asking, {"role": "user", "content": results + (behind if variant else [])}]


def responses(ids: list[str], *, variant: int = 0) -> list[Message]:
    """A turn of OpenAI Responses, the calls together or one after the other."""
    calls: list[Message] = [
        {
            "type": "function_call",
            "id": f"fc_{id_}",
            "call_id": id_,
            "name": "look",
            "arguments": "{}",
        }
        for id_ in ids
    ]
    outputs: list[Message] = [
        {"type": "function_call_output", "call_id": id_, "output": "found"}
        for id_ in ids
    ]
    reasoning: Message = {"type": "reasoning", "id": f"rs_{ids}", "summary": []}
    said: Message = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Done."}],
    }
    if variant:
        return [item for pair in zip(calls, outputs, strict=True) for item in pair]
    return [reasoning, *(calls or [said]), *outputs]


TURNS = {"chat": chat, "ours": ours, "anthropic": anthropic, "responses": responses}


@st.composite
def transcripts(draw: st.DrawFn, dialects: tuple[str, ...] = DIALECTS):
    """A valid transcript; some models use the same ids for every turn."""
    numbers = count()
    fresh = draw(st.booleans())
    messages: list[Message] = [{"role": "system", "content": "Be brief."}]
    messages *= draw(st.integers(0, 1))
    for _ in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": "Look, please."})
        for _ in range(draw(st.integers(1, 2))):
            dialect = draw(st.sampled_from(dialects))
            ids = [
                f"{dialect}_{next(numbers) if fresh else n}"
                for n in range(draw(st.integers(0, 3)))
            ]
            messages += TURNS[dialect](ids, variant=draw(st.integers(0, 1)))
    return messages


def _without_blocks(draw: st.DrawFn, message: Message) -> Message:
    content = message.get("content")
    if not isinstance(content, list) or not draw(st.booleans()):
        return message
    kept = [part for part in content if draw(st.booleans())]
    kept = draw(st.permutations(kept))
    return {**message, "content": kept} if kept else message


@st.composite
def damaged(draw: st.DrawFn, dialects: tuple[str, ...] = DIALECTS):
    """A transcript with messages cut off, missing, repeated or in another order."""
    messages = draw(transcripts(dialects))
    how = draw(st.sets(st.sampled_from(["cut", "lose", "repeat", "shuffle", "blocks"])))
    if "cut" in how:
        messages = messages[: draw(st.integers(0, len(messages)))]
    if "lose" in how:
        messages = [message for message in messages if draw(st.integers(0, 3))]
    if "repeat" in how:
        messages = [m for m in messages for _ in range(draw(st.integers(1, 2)))]
    if "blocks" in how:
        messages = [_without_blocks(draw, message) for message in messages]
    if "shuffle" in how:
        messages = draw(st.permutations(messages))
    return list(messages)


# --- nonsense -------------------------------------------------------------------------

_WORDS = st.sampled_from([
    "assistant", "user", "tool", "system", "tool_use", "tool_result", "function_call",
    "function_call_output", "computer_call", "reasoning", "text", "a", "b", "", "{",
])  # fmt: skip
_NAMES = st.sampled_from([
    "role", "type", "content", "tool_calls", "tool_call_id", "tool_use_id", "call_id",
    "id", "function", "arguments", "input", "name", "status", "result", "output",
    "text", "holdfast", "tokens",
])  # fmt: skip
_SCALARS = _WORDS | st.none() | st.booleans() | st.integers() | st.floats() | st.text()

nonsense = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_NAMES, inner, max_size=6)
        | st.tuples(inner)
    ),
    max_leaves=20,
)

_PARTS = st.fixed_dictionaries(
    {"type": _WORDS | nonsense, "id": _WORDS, "tool_use_id": _WORDS},
    optional={"content": nonsense, "text": nonsense, "status": _WORDS},
)
odd_messages = nonsense | st.fixed_dictionaries(
    {},
    optional={
        "role": _WORDS | nonsense,
        "type": _WORDS,
        "content": st.lists(_PARTS | nonsense, max_size=4) | nonsense,
        "tool_calls": st.lists(_PARTS | nonsense, max_size=4) | nonsense,
        "tool_call_id": _WORDS,
        "call_id": _WORDS,
    },
)
