"""A list of messages as people read it: who says or calls what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast._messages.transcript import calls_of, fields_of, role_of, text_of
from holdfast.cli.terminal.output import Cell
from holdfast.diff import excerpt

LONGEST = 100


def message_documents(messages: Iterable[object]) -> Iterator[dict[str, object]]:
    """Each message with its place, whatever shape it was kept in."""
    for position, message in enumerate(messages):
        yield {
            "position": position,
            "role": role_of(message),
            "text": text_of(message),
            "calls": [call.name for call in calls_of(message, position)],
        }


def message_rows(messages: Iterable[object]) -> Iterator[list[Cell]]:
    """A row for each message."""
    for position, message in enumerate(messages):
        number: Cell = (f"[{position}]", "faint")
        yield [number, (role_of(message), "name"), (_said(message, position), "")]


def gist(message: object) -> str:
    """A message cut to what one line of many has room for."""
    text = ": ".join(filter(None, [role_of(message), _said(message, 0)]))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _said(message: object, position: int) -> str:
    text = " ".join(text_of(message).split())
    calls = [
        f"{call.name}({excerpt(call.arguments)})"
        for call in calls_of(message, position)
    ]
    return " ".join([text, *calls] if text else calls) or _content(message)


def _content(message: object) -> str:
    return excerpt(fields_of(message).get("content", message))
