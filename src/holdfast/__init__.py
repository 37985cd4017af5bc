"""Holdfast keeps the state of AI agents: every step saved, any step restorable."""

from importlib import import_module

# Type checkers take this name for true; importing it from typing costs more than the
# rest of this file.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast._api.branch import Branch
    from holdfast._api.exploration import AsyncExploration, Exploration
    from holdfast._api.open import (
        open,  # noqa: A004 - meant as holdfast.open
        open_async,
        salvage,
    )
    from holdfast._api.store import AsyncStore, Store
    from holdfast._api.streams import AsyncStream, Stream
    from holdfast._api.thread import AsyncThread, Thread
    from holdfast._engine.search.query import Match
    from holdfast._engine.threads.blame import Blame
    from holdfast._engine.threads.explore import BranchResult
    from holdfast._engine.threads.merge import Merge
    from holdfast._engine.upkeep.erasure import Erasure
    from holdfast._engine.upkeep.salvage import Salvaged
    from holdfast._engine.upkeep.statistics import Statistics
    from holdfast._engine.upkeep.verify import Problem, Verification
    from holdfast._port import Pruned
    from holdfast._values.merge import ABSENT, MergeConflict
    from holdfast._values.records import Change, Checkpoint, Move, Page, ThreadRecord
    from holdfast.agents import Agent, AgentCheckpoint
    from holdfast.conversations import Conversation
    from holdfast.diff import Diff
    from holdfast.documents import Document
    from holdfast.effects import Effect, once, repeatable
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
    from holdfast.streams import Event
    from holdfast.workspace import Workspace

__all__ = [
    "ABSENT",
    "Agent",
    "AgentCheckpoint",
    "AsyncExploration",
    "AsyncRecorder",
    "AsyncStore",
    "AsyncStream",
    "AsyncThread",
    "Attachment",
    "Blame",
    "Branch",
    "BranchResult",
    "Busy",
    "Change",
    "Checkpoint",
    "Closed",
    "Conflict",
    "Conversation",
    "Corrupt",
    "Diff",
    "Document",
    "Effect",
    "Erasure",
    "Event",
    "Exploration",
    "FormatMismatch",
    "HoldfastError",
    "Match",
    "Merge",
    "MergeConflict",
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
    "Stream",
    "Thin",
    "Thread",
    "ThreadRecord",
    "ToolCall",
    "Unstorable",
    "Unsupported",
    "Verification",
    "Workspace",
    "once",
    "open",
    "open_async",
    "repeatable",
    "salvage",
]

__version__ = "0.1.0"

# Where the names above live. They are loaded when they are first used, so that a
# program that only asks for the version, or may not need a store, starts at once.
_MODULES = {
    "_port": ("Pruned",),
    "_api.branch": ("Branch",),
    "_api.exploration": ("AsyncExploration", "Exploration"),
    "_api.open": ("open", "open_async", "salvage"),
    "_engine.threads.blame": ("Blame",),
    "_engine.threads.explore": ("BranchResult",),
    "_engine.threads.merge": ("Merge",),
    "_engine.upkeep.erasure": ("Erasure",),
    "_engine.upkeep.verify": ("Problem", "Verification"),
    "_engine.upkeep.statistics": ("Statistics",),
    "_engine.upkeep.salvage": ("Salvaged",),
    "_engine.search.query": ("Match",),
    "_values.merge": ("ABSENT", "MergeConflict"),
    "_values.records": ("Change", "Checkpoint", "Move", "Page", "ThreadRecord"),
    "_api.store": ("AsyncStore", "Store"),
    "_api.streams": ("AsyncStream", "Stream"),
    "_api.thread": ("AsyncThread", "Thread"),
    "agents": ("Agent", "AgentCheckpoint"),
    "conversations": ("Conversation",),
    "diff": ("Diff",),
    "documents": ("Document",),
    "effects": ("Effect", "once", "repeatable"),
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
    "streams": ("Event",),
    "workspace": ("Workspace",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


# Modules that are used by name, and loaded with it.
_LEAVES = {
    "archive",
    "backends",
    "importers",
    "mcp",
    "strategy",
    "telemetry",
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
