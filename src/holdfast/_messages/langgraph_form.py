"""How the adapter for LangGraph stores threads, for readers without LangGraph."""

from __future__ import annotations

from typing import Final

# The kind of the threads.
KIND: Final = "langgraph"
# The value of a state that is not a channel: the rest of a LangGraph checkpoint.
FRAME: Final = "__checkpoint__"
