"""The only module that names leaves; each is imported when it is first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def langgraph_importer() -> Any:
    """The module that imports from LangGraph's own savers; it needs LangGraph."""
    return import_module("holdfast.adapters.langgraph._import")
