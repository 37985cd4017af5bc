"""Messages of frameworks, translated for readers of transcripts.

Each module here knows one framework: ``read`` gives a message of that framework in
Anthropic's form (a role, and blocks of text, ``thinking``, ``tool_use`` and
``tool_result``), and ``None`` for every other message. The stored message stays as the
framework made it; only readers use the translation: views, search, the list of calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from holdfast._messages.forms import (
    a2a,
    ag_ui,
    agent_framework,
    claude_agent_sdk,
    google_adk,
    llama_index,
    pydantic_ai,
    strands,
)
from holdfast._messages.loose import fields_of

_FORMS = (
    a2a,
    ag_ui,
    agent_framework,
    claude_agent_sdk,
    google_adk,
    llama_index,
    pydantic_ai,
    strands,
)
# Every message that a form reads has one of these fields, is a thought by its role, or
# has blocks without a type. All other messages need not be tried with each form.
_MARKS = frozenset(
    {
        "author",
        "blocks",
        "contents",
        "kind",
        "message",
        "parts",
        "sessionId",
        "source_id",
        "toolCallId",
        "toolCalls",
    }
)


def plain_form(message: object) -> object:
    """A message as it is stored, or in Anthropic's form if it is a framework's."""
    fields = fields_of(message)
    if not fields or _is_plain(fields):
        return message
    for form in _FORMS:
        found = form.read(fields)
        if found is not None:
            return found
    return message


def _is_plain(fields: Mapping[str, object]) -> bool:
    """True if no form can read a message, as for most; searches ask for each."""
    content = fields.get("content")
    if isinstance(content, list) and content:
        first = fields_of(cast("list[object]", content)[0])
        if first and "type" not in first:
            return False
    return _MARKS.isdisjoint(fields) and fields.get("role") != "reasoning"
