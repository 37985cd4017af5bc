"""The keyword options of the API, and the queries they make.

A method takes them as ``**options: Unpack[...]``: type checkers know every name and
type, and its docstring explains them. Unknown names are refused at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypedDict

from msgspec.structs import replace

from holdfast._engine.files import draft
from holdfast._engine.records import conversations, streams
from holdfast._engine.search import query as search
from holdfast._engine.threads import drafts, lineage, listing, save
from holdfast._engine.threads.lineage import HistoryQuery, Order, Reference
from holdfast._port import NEW_THREAD, Start
from holdfast._values import files as file_values
from holdfast._values.arguments import checked_flag
from holdfast._values.keywords import refuse_other_fields, refuse_unknown
from holdfast._values.records import checked_name, encode_metadata
from holdfast.errors import Unstorable

# --- threads --------------------------------------------------------------------------


class HistoryOptions(TypedDict, total=False):
    """The choice of checkpoints in a history; `Thread.history` explains it."""

    before: Reference | int | None
    order: Order
    all: bool
    tag: str | None
    label: str | None


class MergeOptions(TypedDict, total=False):
    """The description of the save of a merge; `Thread.merge` explains it."""

    label: str | None
    tags: Sequence[str]
    metadata: Mapping[str, object] | None


class StartOptions(TypedDict, total=False):
    """Properties of a new thread; `Store.thread` explains them."""

    kind: str
    owner: str | None
    agent: str | None
    metadata: dict[str, object] | None


class StreamOptions(TypedDict, total=False):
    """Properties of a new stream; `Store.stream` explains them."""

    owner: str | None
    agent: str | None
    metadata: dict[str, object] | None
    anew: bool


class ThreadsOptions(TypedDict, total=False):
    """The choice of listed threads; `Store.threads` explains it."""

    kind: str | None
    owner: str | None
    agent: str | None
    prefix: str | None
    metadata: dict[str, object] | None
    limit: int | None
    after: int | None


@cache
def _options_of_a_save() -> frozenset[str]:
    return (save.SaveOptions.__optional_keys__ | {"if_changed"}) - {"files"}


def appended(
    given: Mapping[str, Sequence[object] | draft.FileSource],
) -> tuple[drafts.ListsDraft, save.SaveOptions]:
    """The draft and options of an `append`; names of a save's options are refused.

    Only ``files`` is both, an option and the name of a list.
    """
    lists: Any = given  # and no cast below: it is a call with every append
    files = save.SaveOptions()
    if "files" in given and isinstance(
        given["files"], draft.Scannable | file_values.Snapshot
    ):
        files = save.SaveOptions(files=given["files"])
        lists = {name: given[name] for name in given if name != "files"}
    if not _options_of_a_save().isdisjoint(lists):
        name = min(_options_of_a_save().intersection(lists))
        raise Unstorable(
            name,
            "is an option of a save, and append() takes only lists of the state; use"
            f" extend({{...}}, {name}=...), or for a list of that name"
            f" extend({{{name!r}: [...]}})",
        )
    return drafts.ListsDraft(lists), files


def history_query(limit: int | None, options: HistoryOptions) -> HistoryQuery:
    """The query for a history."""
    refuse_other_fields("a history", options, lineage.HistoryQuery)
    return lineage.HistoryQuery(limit=limit, **options)


def merge_options(begun: Start, options: MergeOptions) -> save.Options:
    """The options of the save that a merge makes."""
    refuse_unknown("a merge", options, MergeOptions)
    return save.options(start=begun, **options)


def start(options: StartOptions) -> Start:
    """The properties of a thread that does not exist yet."""
    if not options:
        return NEW_THREAD
    refuse_unknown("a thread", options, StartOptions)
    owner, agent = options.get("owner"), options.get("agent")
    return Start(
        kind=checked_name(options.get("kind", "thread"), "kind"),
        owner=None if owner is None else checked_name(owner, "owner"),
        agent=None if agent is None else checked_name(agent, "agent"),
        metadata=encode_metadata(options.get("metadata")),
    )


def stream_start(options: StreamOptions) -> Start:
    """The properties of a stream that does not exist yet."""
    refuse_unknown("a stream", options, StreamOptions)
    begun = start(
        {
            "kind": streams.KIND,
            "owner": options.get("owner"),
            "agent": options.get("agent"),
            "metadata": options.get("metadata"),
        }
    )
    return replace(begun, anew=checked_flag(options.get("anew", False), "anew"))


def threads_query(options: ThreadsOptions) -> listing.ThreadsQuery:
    """The query for a list of threads."""
    refuse_other_fields("a list of threads", options, listing.ThreadsQuery)
    return listing.ThreadsQuery(**options)


# --- conversations --------------------------------------------------------------------


class ListOptions(TypedDict, total=False):
    """The choice of conversations, and the page of them to return."""

    agent: str | None
    owner: str | None
    archived: bool | None
    tag: str | None
    context: Mapping[str, object] | None
    metadata: Mapping[str, object] | None
    limit: int | None
    after: int | None


def search_query(
    text: str, options: search.SearchOptions, *, kind: str | None
) -> search.SearchQuery:
    """The query for a search in threads of one kind, or of all."""
    refuse_unknown("a search", options, search.SearchOptions)
    return search.SearchQuery(text=text, kind=kind, **options)


def list_query(options: ListOptions) -> conversations.ListQuery:
    """The query for a list of conversations."""
    refuse_unknown("a list of conversations", options, ListOptions)
    return conversations.ListQuery(**options)
