"""Sessions of the Claude Agent SDK in a Holdfast store.

    Claude Agent SDK                 Holdfast
    ----------------                 --------
    session                          thread ``claude:<project key>/<session id>``
    subagent transcript (subpath)    thread ``<that of the session>/<subpath>``
    entry of user, model, system     element of the list "messages", unchanged
    other entry: titles, costs       element of the list "bookkeeping", with its place
    append, a batch                  one checkpoint
    uuid of an entry                 key in the journal of the thread: appended once
    summary of a session             value "summary" beside the messages
    mtime                            value "mtime"; later saves have later times
    delete                           the thread is deleted, with its subagents'

`HoldfastSessionStore` only translates; all state is in the store. Needs the extra:
``pip install 'holdfast[claude-agent-sdk]'``.
"""

from __future__ import annotations

from holdfast.operations import import_extra

import_extra("claude_agent_sdk.testing", "the Claude Agent SDK", "claude-agent-sdk")

from holdfast.adapters.claude_agent_sdk._session_store import (  # noqa: E402 - see above
    HoldfastSessionStore,
)

__all__ = ["HoldfastSessionStore"]
