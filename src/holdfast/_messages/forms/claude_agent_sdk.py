"""Entries of the Claude Agent SDK: the lines of its transcripts.

An entry of a user or of the model has a message of Anthropic's form inside. A note of
Claude about itself, such as that it compacted the session, is a message of the role
``system``.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast._messages.loose import fields_of

_SPEAKERS = frozenset({"user", "assistant"})


def read(fields: Mapping[str, object]) -> Mapping[str, object] | None:
    """The message of an entry, ``None`` for what is no entry."""
    kind = fields.get("type")
    if not isinstance(kind, str) or "role" in fields:
        return None
    found: Mapping[str, object] | None = None
    if kind in _SPEAKERS:
        message = fields_of(fields.get("message"))
        found = message if isinstance(message.get("role"), str) else None
    elif kind == "system" and "sessionId" in fields:
        found = {"role": kind, "content": fields.get("content")}
    at = fields.get("timestamp")
    return {**found, "timestamp": at} if found and at is not None else found
