"""Messages of a session as they are stored: message and record of the session."""

from __future__ import annotations

from typing import Any

from strands.types.session import SessionMessage

from holdfast.adapters.strands._plain import plain

MESSAGES = "messages"
# The name of the session's record of a message in a stored element.
RECORD = "session_message"


def element(message: SessionMessage) -> dict[str, Any]:
    """The stored element of a message; its record has the text before a redaction."""
    record = plain(vars(message))
    redacted = record.pop("redact_message")
    if redacted is None:
        return {**record.pop("message"), RECORD: record}
    return {**redacted, RECORD: record}


def restored(stored: dict[str, Any]) -> SessionMessage:
    """The message of an element."""
    message = {name: stored[name] for name in stored if name != RECORD}
    record = stored[RECORD]
    if "message" in record:
        return SessionMessage.from_dict({**record, "redact_message": message})
    return SessionMessage.from_dict({**record, "message": message})


def position(stored: dict[str, Any]) -> int:
    """The number of a message in its session."""
    number: int = stored[RECORD]["message_id"]
    return number
