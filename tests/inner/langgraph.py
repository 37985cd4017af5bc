"""Inner names of the adapter of LangGraph."""

from holdfast.adapters.langgraph._memory import batch as memory_batch
from holdfast.adapters.langgraph._types import Types
