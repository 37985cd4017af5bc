"""The tools that list, search and read documents."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from holdfast._engine.context import Context
from holdfast._engine.records import documents
from holdfast._values.records import Page
from holdfast.documents import DocumentSummary
from holdfast.tools._bounds import (
    as_text,
    fitting_page,
    moment,
    number,
    piece,
    plain,
    shortened,
)
from holdfast.tools._errors import Refusal, echo, suggestion
from holdfast.tools._tool import (
    DEFAULT_LIMIT,
    Arguments,
    Cursor,
    Id,
    Limit,
    Result,
    Scope,
    tool,
)

# How many documents one call reads to find words in them.
MOST_READ = 500
# How many names are looked at for a similar one.
KNOWN = 1000


class DocumentList(Arguments, frozen=True):
    category: Annotated[
        str | None, Meta(description="Only below this, such as notes")
    ] = None
    query: Annotated[
        Id | None, Meta(description="Only with all these words in name or text")
    ] = None
    limit: Limit = None
    cursor: Cursor = None


@tool(
    "List documents, last used first: name, size, version and times, without contents"
    " (document_load gives those). With query only those that have all its words in"
    " their name or text, whatever their case. Where cursor is not null there are more:"
    " call again with it.",
    read_only=True,
)
async def document_list(context: Context, scope: Scope, given: DocumentList) -> Result:
    del scope  # it is not offered within one
    if given.query is not None:
        return await _searched(context, given, given.query.casefold().split())

    async def fetch(limit: int) -> Page[DocumentSummary]:
        return await _page(context, given, limit)

    shown, cursor = await fitting_page(fetch, _listed, given.limit or DEFAULT_LIMIT)
    return {"documents": shown, "cursor": cursor}


async def _page(
    context: Context, given: DocumentList, limit: int
) -> Page[DocumentSummary]:
    after = None if given.cursor is None else number(given.cursor)
    return await documents.summaries(
        context, given.category, nested=True, limit=limit, after=after
    )


async def _searched(context: Context, given: DocumentList, words: list[str]) -> Result:
    """The documents of one stretch that have all words."""
    page = await _page(context, given, MOST_READ)
    found: list[Result] = []
    for summary in page:
        document = await documents.find(context, summary.name)
        text = as_text(plain(document.content)) if document else ""
        if all(word in f"{summary.name}\n{text}".casefold() for word in words):
            found.append(_listed(summary))
    most = given.limit or DEFAULT_LIMIT
    cursor = None if page.cursor is None else str(page.cursor)
    result: Result = {"documents": found[:most], "cursor": cursor}
    if len(found) > most:
        result["note"] = f"{len(found) - most} more match; use more words or a limit."
    elif not found:
        result["note"] = "No document has all words; use fewer ones, or parts of them."
    return result


def _listed(summary: DocumentSummary) -> Result:
    return {
        "name": summary.name,
        "size": summary.size,
        "version": summary.version,
        "metadata": shortened(summary.metadata, 500),
        "updated_at": moment(summary.updated_at),
    }


class DocumentLoad(Arguments, frozen=True):
    name: Annotated[Id, Meta(description="Its whole name")]
    cursor: Cursor = None


@tool(
    "Read one document: its content and metadata. A very long content comes in pieces:"
    " call again with the cursor until that is null.",
    read_only=True,
)
async def document_load(context: Context, scope: Scope, given: DocumentLoad) -> Result:
    del scope
    found = await documents.find(context, given.name)
    if found is None:
        raise await _missing(context, given.name)
    about: Result = {
        "name": found.name,
        "version": found.version,
        "metadata": shortened(found.metadata, 2000),
        "updated_at": moment(found.updated_at),
    }
    return piece(about, found.content, given.cursor)


async def _missing(context: Context, name: str) -> Refusal:
    page = await documents.summaries(
        context, None, nested=True, limit=KNOWN, after=None
    )
    near = suggestion(name, [summary.name for summary in page])
    return Refusal(
        "not_found",
        f"there is no document {echo(name)}",
        f"{near}document_list gives all names.",
    )


DOCUMENT_TOOLS = (document_list, document_load)
