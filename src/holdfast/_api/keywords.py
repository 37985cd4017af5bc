"""The keyword options of the API, and the queries they make.

A method takes them as ``**options: Unpack[...]``: type checkers know every name and
type (see `declared`), and its docstring explains them. Here unknown names are refused
at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holdfast._api import declared
from holdfast._engine.files import draft
from holdfast._engine.records import conversations, streams
from holdfast._engine.search import query as search
from holdfast._engine.threads import drafts, lineage, listing, save
from holdfast._port import NEW_THREAD, Start
from holdfast._values import files as file_values
from holdfast._values.arguments import checked_flag
from holdfast._values.keywords import refuse_other_fields, refuse_unknown
from holdfast._values.records import checked_name, encode_metadata
from holdfast.errors import Unstorable

if TYPE_CHECKING:
    from holdfast._api.declared import (
        HistoryOptions,
        ListOptions,
        MergeOptions,
        SearchOptions,
        StartOptions,
        StreamOptions,
        ThreadsOptions,
    )
    from holdfast._engine.files.draft import FileSource
    from holdfast._engine.records.conversations import ListQuery
    from holdfast._engine.search.query import SearchQuery
    from holdfast._engine.threads.drafts import ListsDraft
    from holdfast._engine.threads.lineage import HistoryQuery
    from holdfast._engine.threads.listing import ThreadsQuery
    from holdfast._engine.threads.save import Options, SaveOptions

# --- threads --------------------------------------------------------------------------


@cache
def _options_of_a_save() -> frozenset[str]:
    return (save.SaveOptions.__optional_keys__ | {"if_changed"}) - {"files"}


def appended(
    given: Mapping[str, Sequence[object] | FileSource],
) -> tuple[ListsDraft, SaveOptions]:
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


def merge_options(begun: Start, options: MergeOptions) -> Options:
    """The options of the save that a merge makes."""
    refuse_unknown("a merge", options, declared.MergeOptions)
    return save.options(start=begun, **options)


def start(options: StartOptions) -> Start:
    """The properties of a thread that does not exist yet."""
    if not options:
        return NEW_THREAD
    refuse_unknown("a thread", options, declared.StartOptions)
    owner, agent = options.get("owner"), options.get("agent")
    return Start(
        kind=checked_name(options.get("kind", "thread"), "kind"),
        owner=None if owner is None else checked_name(owner, "owner"),
        agent=None if agent is None else checked_name(agent, "agent"),
        metadata=encode_metadata(options.get("metadata")),
    )


def stream_start(options: StreamOptions) -> Start:
    """The properties of a stream that does not exist yet."""
    refuse_unknown("a stream", options, declared.StreamOptions)
    begun = start(
        {
            "kind": streams.KIND,
            "owner": options.get("owner"),
            "agent": options.get("agent"),
            "metadata": options.get("metadata"),
        }
    )
    return replace(begun, anew=checked_flag(options.get("anew", False), "anew"))


def threads_query(options: ThreadsOptions) -> ThreadsQuery:
    """The query for a list of threads."""
    refuse_other_fields("a list of threads", options, listing.ThreadsQuery)
    return listing.ThreadsQuery(**options)


# --- conversations --------------------------------------------------------------------


def search_query(text: str, options: SearchOptions, *, kind: str | None) -> SearchQuery:
    """The query for a search in threads of one kind, or of all."""
    refuse_unknown("a search", options, declared.SearchOptions)
    return search.SearchQuery(text=text, kind=kind, **options)


def list_query(options: ListOptions) -> ListQuery:
    """The query for a list of conversations."""
    refuse_unknown("a list of conversations", options, declared.ListOptions)
    return conversations.ListQuery(**options)
