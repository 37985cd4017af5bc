"""Messages as people read them: the role, the text and the calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast._messages.loose import fields_of
from holdfast._messages.transcript import calls_of, role_of, text_of
from holdfast.diff import WIDTH, excerpt


def message_documents(
    messages: Iterable[object], first: int = 0
) -> Iterator[dict[str, object]]:
    """Each message with its position, whatever format it was saved in.

    ``first`` is the position of the first one.
    """
    for position, message in enumerate(messages, first):
        yield {
            "position": position,
            "role": role_of(message),
            "text": text_of(message),
            "calls": [call.name for call in calls_of(message, position)],
        }


def one_line_text(message: object, position: int = 0, width: int = WIDTH) -> str:
    """The text and the calls of a message on one line.

    ``width`` is how much of a call's arguments is shown.
    """
    text = " ".join(text_of(message).split())
    calls = [
        f"{call.name}({excerpt(call.arguments, width)})"
        for call in calls_of(message, position)
    ]
    shown = " ".join([text, *calls] if text else calls)
    return shown or excerpt(fields_of(message).get("content", message), width)
