"""Reading stored messages in any provider's format: roles, text, calls and results.

Pure. Messages are data of the caller, in the format of OpenAI (Chat or Responses),
Anthropic, Holdfast or any other, so nothing here raises on any message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

import msgspec
import orjson

from holdfast._messages.forms import plain_form
from holdfast._messages.loose import fields_of, kind_of, parts_of
from holdfast.errors import Unstorable

M = TypeVar("M")

_LONG_NUMBER = re.compile(r"\d{19}")
_ROLES = {"developer": "system", "function": "tool"}
_NEVER_CALLING = frozenset({"system", "user", "tool"})
_ARGUMENTS = ("arguments", "input", "args")
_ANSWERED = frozenset({"completed", "failed"})
_UNREAD = frozenset({"thinking", "redacted_thinking", "reasoning", "summary_text"})
_PLAIN = frozenset({"role", "content"})
_SAID = ("content", "refusal", "output")
_TEXTS = ("text", "refusal", "content", "output")

# The estimate of `tokens_of`. English has about four characters a token, other scripts
# about one; for a picture the providers count 800 to 1,600 tokens.
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_MESSAGE = 4
_TOKENS_PER_PICTURE = 1_000
_PICTURES = frozenset({"image", "image_url", "input_image", "document", "input_file"})


class TranscriptCall(msgspec.Struct, frozen=True):
    """A tool call in a message; ``position`` is the index of that message.

    ``arguments`` are decoded if they are JSON text, and ``{}`` if there are none.
    ``answered`` means that the call itself has its result, so that no message with the
    result follows.
    """

    id: str
    name: str
    arguments: object
    position: int = 0
    answered: bool = False


def role_of(message: object) -> str:
    """The role: ``system``, ``user``, ``assistant``, ``tool``, or as it is stored.

    A user message that has only tool results is ``tool``. A message without a role gets
    one from its type, "" if that is unknown.
    """
    return _role(fields_of(plain_form(message)))


def _role(fields: Mapping[str, object]) -> str:
    role = fields.get("role")
    if not isinstance(role, str):
        return _role_of_item(fields)
    blocks = [fields_of(part) for part in parts_of(fields.get("content"))]
    if role == "user" and blocks and all(map(_is_result, blocks)):
        return "tool"
    return _ROLES.get(role, role)


def is_message(value: object) -> bool:
    """True for a message in the form of any provider or framework."""
    return bool(role_of(value))


def _role_of_item(fields: Mapping[str, object]) -> str:
    kind = kind_of(fields)
    if kind.endswith("_call_output"):
        return "tool"
    if kind.endswith("_call") or kind == "reasoning":
        return "assistant"
    return ""


def text_of(message: object) -> str:
    """The text that a person would read and search: without reasoning."""
    if isinstance(message, str):
        return message
    fields = fields_of(plain_form(message))
    content = fields.get("content")
    if isinstance(content, str) and fields.keys() <= _PLAIN:
        return content  # most messages: the first search reads the text of all
    if _is_unread(fields):
        return ""
    results = (
        fields_of(call).get("result") for call in parts_of(fields.get("tool_calls"))
    )
    said = (fields[name] for name in _SAID if name in fields)
    found = [*said, *results]
    return "\n".join(text for value in found for text in _texts(value) if text)


def _texts(value: object) -> Iterator[str]:
    # Not recursive: stored values may be nested deeper than Python's stack allows.
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list | tuple):
            waiting += reversed(parts_of(cast("object", value)))
        elif not _is_unread(fields := fields_of(value)):
            waiting += [fields[name] for name in reversed(_TEXTS) if name in fields]


def _is_unread(fields: Mapping[str, object]) -> bool:
    return kind_of(fields) in _UNREAD


def calls_of(message: object, position: int = 0) -> list[TranscriptCall]:
    """The tool calls of a message that have an id; others cannot be answered."""
    fields = fields_of(plain_form(message))
    if not fields.keys() - _PLAIN and not parts_of(fields.get("content")):
        return []  # most messages: only text
    if _role(fields) in _NEVER_CALLING:
        return []
    if is_call_item(fields):
        return [_item_call(fields, position)]
    found = [
        *(_flat_call(part, position) for part in parts_of(fields.get("tool_calls"))),
        *(_block_call(part, position) for part in parts_of(fields.get("content"))),
    ]
    # Some libraries store a call both as a block and in the list.
    return list({call.id: call for call in reversed(found) if call}.values())[::-1]


def _flat_call(part: object, position: int) -> TranscriptCall | None:
    """A call of OpenAI Chat or of Holdfast."""
    fields = fields_of(part)
    function = fields_of(fields.get("function") or fields.get("custom")) or fields
    arguments = next((function[n] for n in _ARGUMENTS if n in function), None)
    status = fields.get("status")
    answered = isinstance(status, str) and status in _ANSWERED
    return _call(fields.get("id"), function.get("name"), arguments, position, answered)


def _block_call(part: object, position: int) -> TranscriptCall | None:
    """A content block of Anthropic."""
    fields = fields_of(part)
    if kind_of(fields) != "tool_use":
        return None
    return _call(fields.get("id"), fields.get("name"), fields.get("input"), position)


def _item_call(fields: Mapping[str, object], position: int) -> TranscriptCall:
    """An item of OpenAI Responses."""
    given = next((fields[n] for n in (*_ARGUMENTS, "action") if n in fields), None)
    call = _call(
        fields["call_id"], fields.get("name", kind_of(fields)), given, position
    )
    assert call is not None
    return call


def call_in(part: object) -> TranscriptCall | None:
    """The call in an entry of ``tool_calls``, a block or an item."""
    fields = fields_of(part)
    if is_call_item(fields):
        return _item_call(fields, 0)
    return _block_call(fields, 0) or _flat_call(fields, 0)


def is_call_item(fields: Mapping[str, object]) -> bool:
    """True for a call of OpenAI Responses; hosted tools have no call_id."""
    id_, kind = fields.get("call_id"), kind_of(fields)
    is_item = not isinstance(fields.get("role"), str) and kind.endswith("_call")
    return is_item and isinstance(id_, str) and bool(id_)


def _call(
    id_: object, name: object, arguments: object, position: int, answered: bool = False
) -> TranscriptCall | None:
    if not isinstance(id_, str) or not id_:
        return None
    shown = name if isinstance(name, str) else ""
    return TranscriptCall(id_, shown, decoded(arguments), position, answered)


def answers_of(message: object) -> list[str]:
    """The ids of the calls that a message has results of, in order."""
    fields = fields_of(plain_form(message))
    found: list[object] = []
    role = fields.get("role")
    if role == "user":
        blocks = map(fields_of, parts_of(fields.get("content")))
        found += [block.get("tool_use_id") for block in blocks if _is_result(block)]
    elif role == "tool":
        found.append(fields.get("tool_call_id"))
    elif not isinstance(role, str) and kind_of(fields).endswith("_call_output"):
        found.append(fields.get("call_id"))
    return [id_ for id_ in found if isinstance(id_, str) and id_]


def open_calls(messages: Iterable[object]) -> list[TranscriptCall]:
    """The calls without a result, in order."""
    found: list[TranscriptCall] = []
    for position, message in enumerate(messages):
        for answer in answers_of(message):
            ids = [call.id for call in found]
            if answer in ids:
                del found[len(ids) - 1 - ids[::-1].index(answer)]
        found += [c for c in calls_of(message, position) if not c.answered]
    return found


# --- the context window ---------------------------------------------------------------


def tokens_of(message: object) -> int:
    """An estimate of a message's tokens, or its ``tokens`` field if it has one.

    One token for four characters of ASCII or one other character of its text and calls,
    1,000 for a picture or file, 4 for the message itself. It may be wrong by a third:
    pass the model's own counter where that matters.
    """
    fields = fields_of(plain_form(message))
    known = fields.get("tokens")
    if "holdfast" in fields and type(known) is int and known > 0:
        return known
    texts = [text_of(fields)]
    for call in calls_of(fields):
        texts += [call.name, as_text(call.arguments)]
    parts = map(fields_of, parts_of(fields.get("content")))
    pictures = sum(kind_of(part) in _PICTURES for part in parts)
    text = "".join(texts)
    plain = len(text.encode("ascii", "ignore"))
    tokens = -(-plain // _CHARACTERS_PER_TOKEN) + len(text) - plain
    return tokens + pictures * _TOKENS_PER_PICTURE + _TOKENS_PER_MESSAGE


def window(
    messages: Sequence[M], budget: int, count: Callable[[M], int] = tokens_of
) -> list[M]:
    """All system messages and the newest others within a budget of tokens, in order.

    ``count`` gives the tokens of a message. A call and its results are taken together
    or not at all, and a window does not begin with a result without its call. System
    messages are always taken, even if they alone exceed the budget.
    """
    if type(budget) is not int or budget < 1:
        raise Unstorable("budget", f"must be a positive number of tokens: {budget!r}")
    system = {n for n, message in enumerate(messages) if role_of(message) == "system"}
    left = budget - sum(count(messages[n]) for n in system)
    first = len(messages)
    for group in reversed(_groups(messages)):
        left -= sum(count(messages[n]) for n in group if n not in system)
        if left < 0:
            break
        first = group.start
    first = _behind_orphans(messages, first, system)
    return [m for n, m in enumerate(messages) if n >= first or n in system]


def _groups(messages: Sequence[object]) -> list[range]:
    """The messages in order, grouped with the messages they need."""
    last = _last_needed(messages)
    groups: list[range] = []
    start = end = 0
    for position in range(len(messages)):
        end = max(end, last[position])
        if position == end:
            groups.append(range(start, position + 1))
            start = end = position + 1
    return groups


def _last_needed(messages: Sequence[object]) -> list[int]:
    """The position, for each message, of the last one that must be taken with it."""
    last = list(range(len(messages)))
    pending: dict[str, int] = {}
    for position, message in enumerate(messages):
        if kind_of(fields_of(message)) == "reasoning":
            last[position] = min(position + 1, len(messages) - 1)
        for answer in answers_of(message):
            last[pending.get(answer, position)] = position
        pending.update((call.id, position) for call in calls_of(message))
    return last


def _behind_orphans(messages: Sequence[object], first: int, system: set[int]) -> int:
    """The first position for a window: after results whose calls are not in it."""
    while first < len(messages) and (first in system or answers_of(messages[first])):
        first += 1
    return first


# --- arguments ------------------------------------------------------------------------


def decoded(arguments: object) -> object:
    """The arguments of a call, decoded if they are JSON text; ``{}`` if none."""
    if isinstance(arguments, str):
        try:
            # Some providers send "" for no arguments.
            arguments = _parsed(arguments.strip() or "null")
        except ValueError:  # a model can write anything
            return arguments
    return {} if arguments is None else arguments


def _parsed(text: str) -> object:
    if not _LONG_NUMBER.search(text):
        return orjson.loads(text)
    # orjson would round an integer of more than 64 bits.

    return json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def as_text(value: object) -> str:
    """A value as JSON, or as Python's text if it has no JSON."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError):
        return str(value)


def _is_result(fields: Mapping[str, object]) -> bool:
    return kind_of(fields) == "tool_result"
