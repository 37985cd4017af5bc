"""The stores that are measured: what each is, what it needs, and our counterpart."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib import import_module, metadata

from benchmarks.contest.stores.chat import Chat

WHOLE, NEW, PACKED = "whole states", "new messages", "packed at the end"
LANGGRAPH, DELTAS = "LangGraph", "LangGraph, delta channels"
OPENAI = "OpenAI Agents"

THREADS = "benchmarks.contest.stores.threads"
WHOLE_STATES = "benchmarks.contest.stores.whole_states"
SHADOW_GIT = "benchmarks.contest.stores.shadow_git"
GRAPHS = "benchmarks.contest.stores.langgraph"
SESSIONS = "benchmarks.contest.stores.openai_agents"


@dataclass(frozen=True, slots=True)
class Peer:
    """One way to keep a conversation, ours or another.

    Those of one ``group`` do the same work, and the first of it is ours: the others
    are compared with that. ``opens`` names what makes a `Chat` of a path. Without
    ``history`` only the last state can be loaded.
    """

    key: str
    group: str
    name: str
    opens: str
    history: bool = True
    packages: tuple[str, ...] = ()
    program: str = ""

    @property
    def title(self) -> str:
        """Its name, with its group if that name is in several."""
        alone = sum(peer.name == self.name for peer in TABLE) == 1
        return self.name if alone else f"{self.name} ({self.group})"

    @property
    def is_ours(self) -> bool:
        """Whether it is a way to use Holdfast."""
        return self.name.startswith("Holdfast")

    @property
    def is_framework(self) -> bool:
        """Whether it needs more than Holdfast and its extra for compression."""
        return bool(set(self.packages) - set(ZSTD))

    @property
    def ours(self) -> str:
        """The key of what it is compared with."""
        return next(peer.key for peer in TABLE if peer.group == self.group)

    @property
    def install(self) -> str:
        """The command that installs what it needs, an empty text if all is there."""
        if self.program and shutil.which(self.program) is None:
            return f"install {self.program}"
        if all(version_of(package) for package in self.packages):
            return ""
        return f"pip install {' '.join(self.packages)}"


def opened(name: str, path: str) -> Chat:
    """The conversation that a store keeps at a path; imports its framework.

    The name is that of a function or class, such as ``package.module:Class``.
    """
    module, _, function = name.partition(":")
    found: Chat = getattr(import_module(module), function)(path)
    return found


def version_of(package: str) -> str | None:
    """The version of an installed package, ``None`` if it is not installed."""
    found = next(iter(metadata.distributions(name=package)), None)
    return None if found is None else found.version


ZSTD = ("zstandard",)
GRAPH_PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite", "zstandard")
AGENTS = ("openai-agents",)

TABLE = (
    Peer("save", WHOLE, "Holdfast, save", f"{THREADS}:SavingThread"),
    Peer("json", WHOLE, "JSON file", f"{WHOLE_STATES}:JsonFile", history=False),
    Peer("blob", WHOLE, "SQLite blobs", f"{WHOLE_STATES}:Blobs"),
    Peer("git", WHOLE, "shadow git", f"{SHADOW_GIT}:ShadowGit", program="git"),
    Peer("append", NEW, "Holdfast, append", f"{THREADS}:AppendingThread"),
    Peer(
        "compressed", NEW, "Holdfast, compressed", f"{THREADS}:compressed",
        packages=ZSTD,
    ),
    Peer(
        "dbos", NEW, "DBOS steps", "benchmarks.contest.stores.dbos:StepsChat",
        packages=("dbos",),
    ),
    Peer(
        "agentfs", NEW, "AgentFS keys", "benchmarks.contest.stores.agentfs:KeysChat",
        history=False, packages=("agentfs-sdk",),
    ),
    Peer(
        "compacted", PACKED, "Holdfast, compressed", f"{THREADS}:CompactedThread",
        packages=ZSTD,
    ),
    Peer("packed-git", PACKED, "shadow git", f"{SHADOW_GIT}:PackedGit", program="git"),
    Peer(
        "holdfast-saver", LANGGRAPH, "HoldfastSaver", f"{GRAPHS}:HoldfastSaverGraph",
        packages=GRAPH_PACKAGES,
    ),
    Peer(
        "sqlite-saver", LANGGRAPH, "SqliteSaver", f"{GRAPHS}:SqliteSaverGraph",
        packages=GRAPH_PACKAGES,
    ),
    Peer(
        "holdfast-saver-deltas", DELTAS, "HoldfastSaver", f"{GRAPHS}:holdfast_deltas",
        packages=GRAPH_PACKAGES,
    ),
    Peer(
        "sqlite-saver-deltas", DELTAS, "SqliteSaver", f"{GRAPHS}:sqlite_deltas",
        packages=GRAPH_PACKAGES,
    ),
    Peer(
        "holdfast-session", OPENAI, "HoldfastSession", f"{SESSIONS}:holdfast_session",
        packages=AGENTS,
    ),
    Peer(
        "sqlite-session", OPENAI, "SQLiteSession", f"{SESSIONS}:sqlite_session",
        history=False, packages=AGENTS,
    ),
    Peer(
        "advanced-session", OPENAI, "AdvancedSQLiteSession",
        f"{SESSIONS}:advanced_session", packages=AGENTS,
    ),
)  # fmt: skip
PEERS = {peer.key: peer for peer in TABLE}


def chosen(*, frameworks: bool) -> list[Peer]:
    """The stores to measure."""
    return [peer for peer in TABLE if frameworks or not peer.is_framework]
