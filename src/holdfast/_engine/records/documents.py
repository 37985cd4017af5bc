"""Documents, each kept in a thread: saving, loading, listing by category."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast._engine.context import Context
from holdfast._engine.threads import removal
from holdfast._engine.threads.drafts import AmendDraft, Amendment, read_values_of
from holdfast._engine.threads.lineage import HistoryQuery, Reference, history
from holdfast._engine.threads.listing import read_threads
from holdfast._engine.threads.load import converted, loaded
from holdfast._engine.threads.save import Options
from holdfast._engine.threads.save import save as save_thread
from holdfast._port import Start, Threads
from holdfast._values.arguments import checked_flag
from holdfast._values.records import (
    LONGEST_NAME,
    Checkpoint,
    Page,
    ThreadRecord,
    Unset,
    check_filter,
    checked_limit,
    checked_name,
    encode_metadata,
)
from holdfast._values.reference import HEAD
from holdfast.documents import Document, DocumentSummary
from holdfast.errors import NotFound

KIND = "document"
PREFIX = "document:"
CHUNK = 200


def thread_of(name: object) -> str:
    """The name of the thread that keeps a document."""
    return PREFIX + checked_name(name, "document name", LONGEST_NAME - len(PREFIX))


def missing(name: str) -> NotFound:
    """The error for a document that does not exist."""
    return NotFound(
        f"document {name!r} does not exist; see documents.list()", thread=PREFIX + name
    )


async def save(
    context: Context,
    name: str,
    content: object,
    *,
    metadata: dict[str, Any] | None,
    expect: Reference | Unset | None,
) -> Document:
    """Save a document, replacing what it held."""
    thread, now = thread_of(name), context.clock()
    encode_metadata(metadata)

    values: dict[str, Any] = {}

    def everything(before: dict[str, Any] | None) -> Amendment:
        old = before or {}
        about = old.get("metadata") if metadata is None else metadata
        values.clear()
        values.update(content=content, created_at=old.get("created_at", now))
        values.update({"metadata": about} if about else {})
        return Amendment(values, whole=True)

    how = Options(expect=expect, start=Start(kind=KIND, anew=True))
    draft = AmendDraft(("created_at", "metadata"), everything)
    saved = await save_thread(context, thread, draft, how)
    return _document(name, saved, values)


def _document(name: str, checkpoint: Checkpoint, state: dict[str, Any]) -> Document:
    return Document(
        name=name,
        content=state.get("content"),
        metadata=state.get("metadata") or {},
        created_at=state.get("created_at", checkpoint.saved_at),
        updated_at=checkpoint.saved_at,
        version=checkpoint.step,
        checkpoint=checkpoint.id,
    )


async def load(
    context: Context, name: str, reference: Reference = HEAD, type_: Any = None
) -> Document:
    """A document as it was at a checkpoint, its content as a ``type_``."""
    try:
        found = await loaded(context, thread_of(name), reference)
    except NotFound:
        if await context.find_thread(thread_of(name)) is None:
            raise missing(name) from None
        raise
    document = _document(name, found.checkpoint, found.values)
    document.content = converted(document.content, type_)
    return document


async def find(context: Context, name: str, type_: Any = None) -> Document | None:
    """A document, ``None`` if there is none."""
    try:
        return await load(context, name, type_=type_)
    except NotFound:
        return None


async def versions(
    context: Context, name: str, limit: int | None, before: Reference | int | None
) -> Page[Checkpoint]:
    """The checkpoints of a document, newest first."""
    thread = thread_of(name)
    if await context.find_thread(thread) is None:
        raise missing(name)
    return await history(context, thread, HistoryQuery(limit=limit, before=before))


async def summaries(
    context: Context,
    category: str | None,
    *,
    nested: bool,
    limit: int | None,
    after: int | None,
) -> Page[DocumentSummary]:
    """Documents without their contents, last used first."""
    checked_limit(limit)
    check_filter(category, "category")
    checked_flag(nested, "nested")
    prefix = PREFIX + (f"{category}/" if category else "")
    scan = Threads(
        kind=KIND, prefix=prefix, after=after, limit=min(limit or CHUNK, CHUNK)
    )

    async def matching(
        context: Context, record: ThreadRecord
    ) -> DocumentSummary | None:
        summary = await _summary(context, record)
        is_wanted = nested or category is None or summary.category == category
        return summary if is_wanted else None

    return await read_threads(context, scan, limit, matching, ("metadata",))


async def _summary(context: Context, record: ThreadRecord) -> DocumentSummary:
    head = record.head
    assert head is not None
    about = await read_values_of(context, head, "metadata")
    name = record.id.removeprefix(PREFIX)
    return DocumentSummary(
        name=name,
        category=name.rpartition("/")[0],
        size=head.size,
        version=head.step,
        metadata=about.get("metadata") or {},
        updated_at=head.saved_at,
    )


async def delete(context: Context, names: Sequence[str]) -> int:
    """Delete documents; returns how many there were."""
    return await removal.delete_threads(context, map(thread_of, names))
