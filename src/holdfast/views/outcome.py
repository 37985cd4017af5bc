"""Failed steps, found by what programs and providers write into them."""

from __future__ import annotations

from holdfast._messages.forms import plain_form
from holdfast._messages.loose import fields_of, kind_of, parts_of
from holdfast._messages.transcript import answers_of, calls_of, role_of
from holdfast._values.records import Checkpoint

_FAILED = frozenset({"error", "failed"})


def is_error(checkpoint: Checkpoint, message: object) -> bool:
    """True if the checkpoint, or the last message in it, records an error."""
    metadata = checkpoint.metadata
    told = metadata.get("status")
    return (
        checkpoint.kind in _FAILED
        or bool(metadata.get("error"))
        or (isinstance(told, str) and told in _FAILED)
        or is_failed_result(message)
    )


def is_failed_result(message: object) -> bool:
    """True if the message has the result of a tool that failed."""
    fields = fields_of(plain_form(message))
    blocks = map(fields_of, parts_of(fields.get("content")))
    results = [fields, *(b for b in blocks if kind_of(b) == "tool_result")]
    if not answers_of(message):
        return False
    return any(
        part.get("is_error") is True
        or part.get("status") in _FAILED
        or fields_of(part.get("metadata")).get("is_error") is True
        for part in results
    )


def tool_of(message: object) -> str | None:
    """The tool that a message calls, or whose result it has, if it says so."""
    calls = calls_of(message)
    if calls:
        return calls[0].name or None
    name = fields_of(message).get("name")
    is_result = role_of(message) == "tool"
    return name if is_result and isinstance(name, str) else None
