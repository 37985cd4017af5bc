"""Listing the sessions of a project: their times and summaries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from claude_agent_sdk import SessionStoreListEntry, SessionSummaryEntry
from msgspec.structs import replace

from holdfast.adapters.claude_agent_sdk._append import MICROSECONDS, MTIME, SUMMARY
from holdfast.backends import ThreadRecord, Threads
from holdfast.operations import Context
from holdfast.operations.claude import SESSION, last_part, sessions_prefix
from holdfast.operations.threads import read_threads, read_values_of

# Times nearer than this, in milliseconds, are put in the order of the commits.
CLOSE = 1000


class ListedSession(msgspec.Struct, frozen=True):
    """A session as listings show it; ``summary`` is ``None`` until entries are folded.

    An import has no summary: the SDK then reads the session itself.
    """

    id: str
    mtime: int
    summary: dict[str, Any] | None

    def entry(self) -> SessionStoreListEntry:
        """The entry for `list_sessions`."""
        return {"session_id": self.id, "mtime": self.mtime}

    def summaries(self) -> list[SessionSummaryEntry]:
        """The entries for `list_session_summaries`."""
        if self.summary is None:
            return []
        return [{"session_id": self.id, "mtime": self.mtime, "data": self.summary}]


async def sessions(context: Context, project: str) -> list[ListedSession]:
    """The sessions of a project, last used first; no two of them have the same time."""
    prefix = sessions_prefix(project)

    async def read(context: Context, record: ThreadRecord) -> ListedSession:
        assert record.head is not None
        values = await read_values_of(context, record.head, MTIME, SUMMARY)
        used = max(record.updated_at // MICROSECONDS, values.get(MTIME, 0))
        return ListedSession(last_part(record.id, prefix), used, values.get(SUMMARY))

    scan = Threads(kind=SESSION, prefix=prefix, limit=None)
    page = await read_threads(context, scan, None, read, (SUMMARY,))
    return list(_in_order(page))


def _in_order(page: Iterable[ListedSession]) -> Iterator[ListedSession]:
    """Sessions with times in the order of their last commits, the latest first.

    The SDK goes on with the session of the latest time. If two sessions were used in
    one millisecond, or on machines with different clocks, the later commit gets the
    later time. A larger difference stays, because an import commits old sessions last.
    """
    latest = math.inf
    for session in page:
        is_close = latest <= session.mtime < latest + CLOSE
        latest = int(latest) - 1 if is_close else session.mtime
        yield replace(session, mtime=latest)
