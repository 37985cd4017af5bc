"""The keyword options of the API: names and types, each declared once.

A module of its own, since these classes take long to make: a command line that only
looks needs none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from holdfast._api.plugins import Telemetry
    from holdfast._engine.search.query import Per
    from holdfast._engine.threads.lineage import Order, Reference
    from holdfast._engine.upkeep.json_lines import Shown
    from holdfast._values.caller_key import CallerKey
    from holdfast._values.records import Progress
    from holdfast.retention import Retention


class OpenOptions(TypedDict, total=False):
    """Options of a store; `holdfast.open` explains each."""

    durability: Literal["full", "normal"]
    compress: bool
    read_only: bool
    cache_size: int
    busy_timeout: float
    accept_loss: bool
    retention: Retention | None
    prune_every: timedelta
    clock: Callable[[], int]
    new_id: Callable[[], str]
    schema: str
    pool: tuple[int, int]
    partitions: int
    pgbouncer: bool
    telemetry: bool | Telemetry | None
    key: CallerKey | None
    seal: str | None
    scope: str | None
    make_folders: bool


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


class AboutOptions(TypedDict, total=False):
    """The fields of a conversation beside its messages."""

    title: str | None
    summary: str | None
    context: dict[str, Any]
    tags: list[str]
    archived: bool
    budget: int | None
    metadata: dict[str, Any]


class SearchOptions(TypedDict, total=False):
    """The place to search, and the page of the matches to return."""

    agent: str | None
    owner: str | None
    conversation: str | None
    archived: bool | None
    per: Per
    limit: int | None
    after: int | None


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


class ImportOptions(TypedDict, total=False):
    """Options of `Store.import_from`."""

    format: str | None
    dry_run: bool
    progress: Progress | None


class LinesOptions(TypedDict, total=False):
    """The choice of checkpoints for `Store.export_lines`, and the parts to write."""

    threads: Iterable[str] | None
    owner: str | None
    since: datetime | None
    shown: Shown
    heads: bool
    redact: Iterable[str]
