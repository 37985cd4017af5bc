"""The ids of events, as clients send them back: session, cursor and SSE stream."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

# A session's name, a cursor, and the quoted id of an SSE stream: all visible ASCII.
_ID = re.compile(r"([0-9a-z]+)-([0-9a-f]+)-([!-~]*)")


class EventId(NamedTuple):
    """An event's session and cursor, and the SSE stream that it was sent on."""

    session: str
    cursor: str
    sse_stream: str

    @classmethod
    def parsed(cls, text: str) -> EventId | None:
        """The parts of an id, ``None`` for an id of another form."""
        found = _ID.fullmatch(text)
        if found is None:
            return None
        session, cursor, sse_stream = found.groups()
        return cls(session, cursor, unquote(sse_stream))

    def __str__(self) -> str:
        return f"{self.session}-{self.cursor}-{quote(self.sse_stream, safe='')}"
