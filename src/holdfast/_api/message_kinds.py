"""The kinds of threads that keep messages, in which `store.search` looks.

A table, and not a call that each adapter makes when it is imported: a search must also
find the threads of an adapter that this process has never imported.
"""

from __future__ import annotations

from holdfast._engine.records import conversations
from holdfast._port import NEW_THREAD

# The kinds of the adapters' threads, by name.
OF_ADAPTERS = ("langgraph",)
MESSAGE_KINDS = (conversations.KIND, NEW_THREAD.kind, *OF_ADAPTERS)
