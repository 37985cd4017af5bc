"""The whole store in a few numbers."""

from __future__ import annotations

from typing import Any

import msgspec

import holdfast
from holdfast._engine.context import Context
from holdfast._engine.upkeep.statistics import listed_facts, threads_by_kind
from holdfast.views.showing import Showing


class StoreQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query for the one store; it has no fields."""


async def store_document(
    context: Context, query: StoreQuery, showing: Showing
) -> dict[str, Any]:
    """Counts and sizes of a store, and what its backend can do."""
    del query, showing  # numbers only
    facts = await listed_facts(context, await threads_by_kind(context))
    return {
        "threads": facts.threads,
        "checkpoints": facts.checkpoints,
        "bytes": facts.file_bytes,
        "logical_bytes": facts.logical_bytes,
        "stored_bytes": facts.stored_bytes,
        "encrypted": context.keys is not None,
        "format": facts.format,
        "abilities": sorted(facts.abilities),
        "version": holdfast.__version__,
    }
