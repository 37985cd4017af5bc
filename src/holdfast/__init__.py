"""Holdfast keeps the state of AI agents: every step saved, any step restorable."""

from importlib import import_module

# Type checkers take this name for true; importing it from typing costs more than the
# rest of this file.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast._backend import Pruned
    from holdfast._doors import (
        open,  # noqa: A004 - meant as holdfast.open
        open_async,
        salvage,
    )
    from holdfast._operations.blaming import Blame
    from holdfast._operations.checking import Problem, Verification
    from holdfast._operations.counting import Statistics
    from holdfast._operations.salvaging import Salvaged
    from holdfast._operations.searching import Match
    from holdfast._records import Change, Checkpoint, Move, Page, ThreadRecord
    from holdfast._store import AsyncStore, Store
    from holdfast._thread import AsyncThread, Thread
    from holdfast.agents import Agent, AgentCheckpoint
    from holdfast.conversations import Conversation
    from holdfast.diff import Diff
    from holdfast.documents import Document
    from holdfast.errors import (
        Busy,
        Closed,
        Conflict,
        Corrupt,
        FormatMismatch,
        HoldfastError,
        NotFound,
        Unstorable,
        Unsupported,
    )
    from holdfast.messages import Attachment, Message, ToolCall
    from holdfast.recorder import AsyncRecorder, Recorder
    from holdfast.retention import Retention, Thin

__all__ = [
    "Agent",
    "AgentCheckpoint",
    "AsyncRecorder",
    "AsyncStore",
    "AsyncThread",
    "Attachment",
    "Blame",
    "Busy",
    "Change",
    "Checkpoint",
    "Closed",
    "Conflict",
    "Conversation",
    "Corrupt",
    "Diff",
    "Document",
    "FormatMismatch",
    "HoldfastError",
    "Match",
    "Message",
    "Move",
    "NotFound",
    "Page",
    "Problem",
    "Pruned",
    "Recorder",
    "Retention",
    "Salvaged",
    "Statistics",
    "Store",
    "Thin",
    "Thread",
    "ThreadRecord",
    "ToolCall",
    "Unstorable",
    "Unsupported",
    "Verification",
    "open",
    "open_async",
    "salvage",
]

__version__ = "0.1.0"

# Where the names above live. They are loaded when they are first used, so that a
# program that only asks for the version, or may not need a store, starts at once.
_MODULES = {
    "_backend": ("Pruned",),
    "_doors": ("open", "open_async", "salvage"),
    "_operations.blaming": ("Blame",),
    "_operations.checking": ("Problem", "Verification"),
    "_operations.counting": ("Statistics",),
    "_operations.salvaging": ("Salvaged",),
    "_operations.searching": ("Match",),
    "_records": ("Change", "Checkpoint", "Move", "Page", "ThreadRecord"),
    "_store": ("AsyncStore", "Store"),
    "_thread": ("AsyncThread", "Thread"),
    "agents": ("Agent", "AgentCheckpoint"),
    "conversations": ("Conversation",),
    "diff": ("Diff",),
    "documents": ("Document",),
    "errors": (
        "Busy",
        "Closed",
        "Conflict",
        "Corrupt",
        "FormatMismatch",
        "HoldfastError",
        "NotFound",
        "Unstorable",
        "Unsupported",
    ),
    "messages": ("Attachment", "Message", "ToolCall"),
    "recorder": ("AsyncRecorder", "Recorder"),
    "retention": ("Retention", "Thin"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


# Modules that are used by name, and loaded with it.
_LEAVES = {
    "archive",
    "backends",
    "importers",
    "mcp",
    "strategy",
    "testing",
    "tools",
}


def __getattr__(name: str) -> object:
    if name in _MODULES or name in _LEAVES:
        return import_module(f"holdfast.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value: object = getattr(import_module(f"holdfast.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
