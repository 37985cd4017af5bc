"""The routes that read: a query in the address, a view, its document."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias

import msgspec

from holdfast._engine.context import Context
from holdfast._values.typed import prepare
from holdfast.views import (
    cards,
    charts,
    chat,
    checkpoint,
    comparison,
    effect_list,
    file_list,
    finding,
    line,
    log,
    minimap,
    model_context,
    parts,
    rewind,
    state_tree,
    store,
)
from holdfast.views.showing import Showing

Document: TypeAlias = dict[str, Any]
View: TypeAlias = Callable[[Context, Any, Showing], Coroutine[Any, Any, Document]]

SCHEMA = "holdfast.viewer.{}/1"


class Reading(msgspec.Struct, frozen=True):
    """A view, and the type of the query that it takes."""

    query: type[msgspec.Struct]
    view: View


READINGS: Mapping[str, Reading] = {
    "store": Reading(store.StoreQuery, store.store_document),
    "threads": Reading(cards.CardsQuery, cards.threads_document),
    "thread": Reading(cards.ThreadQuery, cards.thread_document),
    "log": Reading(log.LogQuery, log.log_document),
    "line": Reading(line.LineQuery, line.line_document),
    "checkpoint": Reading(checkpoint.CheckpointQuery, checkpoint.checkpoint_document),
    "messages": Reading(chat.ChatQuery, chat.messages_document),
    "state": Reading(state_tree.TreeQuery, state_tree.state_document),
    "part": Reading(parts.PartQuery, parts.part_document),
    "minimap": Reading(minimap.MinimapQuery, minimap.minimap_document),
    "diff": Reading(comparison.DiffQuery, comparison.diff_document),
    "compare": Reading(comparison.CompareQuery, comparison.compare_document),
    "context": Reading(model_context.ContextQuery, model_context.context_document),
    "effects": Reading(effect_list.EffectsQuery, effect_list.effects_document),
    "blame": Reading(finding.BlameQuery, finding.blame_document),
    "search": Reading(finding.FindQuery, finding.search_document),
    "charts": Reading(charts.ChartsQuery, charts.charts_document),
    "rewind": Reading(rewind.RewindQuery, rewind.rewind_document),
    "files": Reading(file_list.FilesQuery, file_list.files_document),
    "file": Reading(file_list.FileQuery, file_list.file_document),
}


def query_of(reading: Reading, given: Mapping[str, list[str]]) -> msgspec.Struct:
    """The query that the parameters of an address mean; `ValidationError` if none."""
    fields = {
        field.encode_name: field for field in msgspec.structs.fields(reading.query)
    }
    unknown = given.keys() - fields.keys()
    if unknown:
        known = ", ".join(fields) or "none"
        text = f"there is no parameter {min(unknown)!r}; there are: {known}"
        raise msgspec.ValidationError(text)
    values = {
        name: texts if _is_list(fields[name].type) else texts[-1]
        for name, texts in given.items()
    }
    return msgspec.convert(values, reading.query, strict=False)


def _is_list(kind: object) -> bool:
    return "list" in str(kind) or "tuple" in str(kind)


def answer(name: str, document: Document) -> Document:
    """A document with the name and version of its schema."""
    return {"schema": SCHEMA.format(name), "next": None, **document}


prepare(*(reading.query for reading in READINGS.values()))
