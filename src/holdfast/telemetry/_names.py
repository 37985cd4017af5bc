"""The names of operations, their objects, and conversations in spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CodeType

from holdfast._api import plugins, transfer
from holdfast._engine.recorder import storage
from holdfast._engine.records import (
    agent_checkpoints,
    agent_snapshots,
    agents,
    conversations,
    documents,
    restore,
    streams,
)
from holdfast._engine.threads import (
    explore,
    journal,
    lineage,
    load,
    merge,
    removal,
    save,
)
from holdfast._engine.threads.drafts import ListsDraft
from holdfast._engine.upkeep import statistics

# Operations whose name is not that of the public method that runs them.
NAMES: dict[object, str] = {
    agent_snapshots.load_any: "load",
    agents.list_agents: "list",
    conversations.summaries: "list",
    documents.summaries: "list",
    documents.versions: "history",
    explore.begin: "explore",
    explore.finish: "explore",
    explore.keep_result: "explore",
    explore.progress: "explore",
    explore.results: "explore",
    explore.state_of_branch: "explore",
    journal.recorded: "journal",
    journal.recorded_one: "recorded",
    lineage.find_head: "head",
    lineage.find_record: "about",
    lineage.find_step: "step",
    lineage.resolve: "get",
    load.difference: "diff",
    merge.preview: "merge",
    plugins.import_into: "import_from",
    removal.delete_matching: "delete",
    removal.rewind_hard: "rewind",
    restore.create_and_tidy: "checkpoint",
    restore.delete: "delete_checkpoint",
    restore.take_automatic: "checkpoint",
    statistics.statistics: "stats",
    storage.flush: "save",
    storage.keep: "record",
    storage.load: "resume",
    storage.secure: "checkpoint",
    transfer.export_archive: "export_to",
}
# What operations work on, by the beginning of the module that has them; the first
# that fits counts.
COLLECTIONS: dict[str, str | None] = {
    "holdfast._engine.threads.listing": None,
    "holdfast._engine.threads.transaction": None,
    "holdfast._engine.threads.": "thread",
    "holdfast._engine.effects.": "thread",
    "holdfast._engine.recorder.": "conversation",
    "holdfast._engine.records.conversations": "conversation",
    "holdfast._api.conversations": "conversation",
    "holdfast._engine.records.documents": "document",
    "holdfast._engine.records.streams": "stream",
    "holdfast._engine.upkeep.trim": "stream",
    "holdfast._engine.records.agent": "agent",
    "holdfast._engine.records.restore": "agent",
    "holdfast.adapters.langgraph.": "thread",
    "holdfast.adapters.openai_agents.": "conversation",
}
LANGGRAPH = "holdfast.adapters.langgraph."
AGENTS = (agents.PREFIX, agent_checkpoints.PREFIX)
# Names of threads that are no conversations: LangGraph's memory has ``item:``.
OTHERS = (*AGENTS, documents.PREFIX, streams.PREFIX, "item:", "pin:")


def operation_name(operation: Callable[..., object], args: Sequence[object]) -> str:
    """The name of the public method that runs an operation."""
    plain = _unwrapped(operation)
    if plain is save.save and any(isinstance(arg, ListsDraft) for arg in args):
        return "append"
    return NAMES.get(plain) or str(getattr(plain, "__name__", "run")).lstrip("_")


def collection_of(operation: Callable[..., object]) -> str | None:
    """The object of an operation, ``None`` for the store as a whole."""
    for beginning, name in COLLECTIONS.items():
        if operation.__module__.startswith(beginning):
            return name
    return None


def thread_in(operation: Callable[..., object], args: Sequence[object]) -> str | None:
    """The thread in the arguments of an operation that takes one by name."""
    first = args[0] if args else None
    code: object = getattr(_unwrapped(operation), "__code__", None)
    takes_thread = isinstance(code, CodeType) and code.co_varnames[1:2] == ("thread",)
    return first if takes_thread and isinstance(first, str) else None


def _unwrapped(operation: Callable[..., object]) -> object:
    # An adapter may wrap an operation to check something first.
    return getattr(operation, "__wrapped__", operation)


def conversation_of(thread: str, operation: Callable[..., object]) -> str | None:
    """The id of the conversation that a thread is, by the name of the thread."""
    if thread.startswith(OTHERS):
        return None
    if operation.__module__.startswith(LANGGRAPH):
        # A graph within a graph has a thread of its own.
        return thread.partition("#")[0]
    return thread.removeprefix(conversations.PREFIX)


def agent_of(thread: str) -> str | None:
    """The id of the agent that a thread is about, by the name of the thread."""
    for prefix in AGENTS:
        if thread.startswith(prefix):
            return thread.removeprefix(prefix)
    return None
