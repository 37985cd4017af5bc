"""Threads: saving drafts, loading, listing, moving and removing, the journal."""

from holdfast._engine.threads import (
    grants,
    journal,
    journal_keys,
    lineage,
    moves,
    removal,
    save,
)
from holdfast._engine.threads.anchors import name_successor
from holdfast._engine.threads.copy_thread import Journals, duplicate
from holdfast._engine.threads.drafts import (
    AmendDraft,
    Amendment,
    Basis,
    ListsDraft,
    NextState,
    StateDraft,
    StateTexts,
    put_text,
    read_bodies,
    read_values,
    read_values_of,
)
from holdfast._engine.threads.lineage import (
    HistoryQuery,
    Reference,
    find_record,
    inherited,
    is_visible,
)
from holdfast._engine.threads.listing import read_threads
from holdfast._engine.threads.load import loaded, read_listed, state_of
from holdfast._engine.threads.prefetch import prefetched
from holdfast._port.removal import plan_removal

__all__ = [
    "AmendDraft",
    "Amendment",
    "Basis",
    "HistoryQuery",
    "Journals",
    "ListsDraft",
    "NextState",
    "Reference",
    "StateDraft",
    "StateTexts",
    "duplicate",
    "find_record",
    "grants",
    "inherited",
    "is_visible",
    "journal",
    "journal_keys",
    "lineage",
    "loaded",
    "moves",
    "name_successor",
    "plan_removal",
    "prefetched",
    "put_text",
    "read_bodies",
    "read_listed",
    "read_threads",
    "read_values",
    "read_values_of",
    "removal",
    "save",
    "state_of",
]
