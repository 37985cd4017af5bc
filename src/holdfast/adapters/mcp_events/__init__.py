"""Resumable sessions of any MCP server over HTTP, kept in a Holdfast store.

    MCP Python SDK                   Holdfast
    --------------                   --------
    session                          stream ``<name>:<session>``, ``mcp:...`` by default
    event of an SSE stream           event of that stream, with the id of the SSE stream
    event id, ``Last-Event-ID``      session, cursor of the event, id of the SSE stream
    replay after an event id         events after the cursor, of the same SSE stream
    priming event                    event without a message, never replayed

When a connection breaks, the client connects again with the last event id that it has
seen, and gets the events after it. `HoldfastEventStore` only translates; all events are
in the store. Needs the extra: ``pip install 'holdfast[mcp-events]'``.
"""

from __future__ import annotations

from holdfast.operations import import_extra

import_extra("mcp.server.streamable_http", "the MCP SDK", "mcp-events")

from holdfast.adapters.mcp_events._event_store import (  # noqa: E402 - see above
    HoldfastEventStore,
)

__all__ = ["HoldfastEventStore"]
