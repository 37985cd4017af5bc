"""Checkpoints as resources: each shortened to fit, and any part of it in full."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

import msgspec
from mcp.types import ListResourcesResult, Resource, ResourceLink

from holdfast._engine.context import Context
from holdfast._engine.records import agent_checkpoints, agents, conversations
from holdfast._engine.threads import listing, load
from holdfast._engine.threads.listing import ThreadsQuery
from holdfast._port import ThreadKey
from holdfast._values.records import Checkpoint, ThreadRecord
from holdfast.tools._bounds import (
    BRIEF,
    LARGEST,
    count_fitting,
    moment,
    number,
    piece,
    plain,
    shortened,
    size,
)
from holdfast.tools._errors import Refusal, bad_cursor, echo
from holdfast.tools._parts import part_of
from holdfast.tools._tool import Result

SCHEME, AUTHORITY = "holdfast", "checkpoint"
TEMPLATE = f"{SCHEME}://{AUTHORITY}/{{id}}{{?part,cursor}}"
JSON = "application/json"
DESCRIPTION = (
    "A saved state by the id of its checkpoint, also of those that checkpoint_list"
    " gives. Long values are shortened; part, a key of the state or key.key, gives one"
    " in full, in pieces if it is very long. Where there is more, next is its address."
)

# Threads in one page of a list, and parts of an agent's checkpoint in one page.
PAGE = 50
MOST_HELD = 200

# For a tool that reads: the thread it reads, by a field of its result.
SOURCES: dict[str, tuple[Callable[[str], str], str]] = {
    "agent_load": (agents.thread_of, "agent_id"),
    "conversation_load": (conversations.thread_of, "conversation_id"),
}


class ResourceAddress(msgspec.Struct, frozen=True):
    """A checkpoint, a part of it, and the cursor in that part."""

    id: str
    part: str | None = None
    cursor: str | None = None

    def __str__(self) -> str:
        asked = {"part": self.part, "cursor": self.cursor}
        query = urlencode({k: v for k, v in asked.items() if v is not None})
        where = f"{SCHEME}://{AUTHORITY}/{quote(self.id, safe='')}"
        return f"{where}?{query}" if query else where


def parse(uri: str) -> ResourceAddress:
    """The address that a URI stands for."""
    try:
        found = urlsplit(uri)
        asked = parse_qs(found.query, keep_blank_values=True)
    except ValueError:
        raise _unknown(uri) from None
    id_ = found.path.removeprefix("/")
    is_ours = (found.scheme, found.netloc) == (SCHEME, AUTHORITY) and not found.fragment
    if not (is_ours and id_) or asked.keys() - {"part", "cursor"}:
        raise _unknown(uri)
    part, cursor = (asked.get(name, [None])[-1] for name in ("part", "cursor"))
    return ResourceAddress(unquote(id_), part, cursor)


def _unknown(uri: str) -> Refusal:
    hint = f"Resources are read as {TEMPLATE}."
    return Refusal("not_found", f"there is no resource {echo(uri)}", hint)


# --- reading --------------------------------------------------------------------------


async def read(context: Context, uri: str) -> Result:
    """The document of a URI."""
    address = parse(uri)
    checkpoint = await listing.get(context, address.id)
    address = msgspec.structs.replace(address, id=checkpoint.id)
    about = _about(checkpoint)
    thread = await context.find_thread(checkpoint.thread)
    if thread is not None and thread.kind == agent_checkpoints.KIND:
        return await _held(context, checkpoint, about, address)
    state = await load.load_any(context, checkpoint)
    if address.part is None:
        return _whole(about, state, address)
    return _part(about, state, address, address.part)


def _about(checkpoint: Checkpoint) -> Result:
    return {
        "uri": str(ResourceAddress(checkpoint.id)),
        "checkpoint_id": checkpoint.id,
        "thread": checkpoint.thread,
        "step": checkpoint.step,
        "kind": checkpoint.kind,
        "label": checkpoint.label,
        "tags": shortened(checkpoint.tags, 1000),
        "bytes": checkpoint.size,
        "saved_at": moment(checkpoint.saved_at),
    }


def _whole(about: Result, state: object, address: ResourceAddress) -> Result:
    if address.cursor is not None:
        raise bad_cursor()
    shown = shortened(state, LARGEST - BRIEF - size(about))
    result = {**about, "state": shown}
    if shown != plain(state):
        parts = shortened(list(_fields(state)), BRIEF // 2)
        result["note"] = "Shortened. Read this address with ?part= one of the parts."
        result["parts"] = parts
    return result


def _part(about: Result, state: object, address: ResourceAddress, part: str) -> Result:
    fields = _fields(state)
    value = fields[part] if part in fields else part_of(fields, part)
    found = piece({**about, "part": shortened(part, 1000)}, value, address.cursor)
    return found | _following(address, found.get("cursor"))


def _fields(state: object) -> Mapping[str, object]:
    if isinstance(state, Mapping):
        named = cast("Mapping[object, object]", state)
        return {str(name): value for name, value in named.items()}
    return {"state": state}


async def _held(
    context: Context, checkpoint: Checkpoint, about: Result, address: ResourceAddress
) -> Result:
    """The checkpoints that a checkpoint of an agent holds, with their addresses."""
    if address.part is not None:
        hint = "It holds other checkpoints: read the address of one of them."
        raise Refusal("not_found", "part: a checkpoint of an agent has none", hint)
    held = await agent_checkpoints.snapshot_of(context, checkpoint)
    start = 0 if address.cursor is None else number(address.cursor)
    names = list(held)[start : start + MOST_HELD]
    pins = await context.backend.read([ThreadKey(held[name]) for name in names])
    shown = [_holding(name, pin) for name, pin in zip(names, pins, strict=True)]
    count = count_fitting(shown, LARGEST - BRIEF - size(about))
    end = start + count
    more = str(end) if end < len(held) else None
    page = {"holds": shown[:count], "total": len(held), "cursor": more}
    return about | page | _following(address, more)


def _holding(name: str, pin: ThreadRecord | None) -> Result:
    head = pin.head if pin is not None and pin.deleted_at is None else None
    return {
        "thread": name,
        "uri": None if head is None else str(ResourceAddress(head.id)),
    }


def _following(address: ResourceAddress, cursor: str | None) -> Result:
    if cursor is None:
        return {}
    return {"next": str(msgspec.structs.replace(address, cursor=cursor))}


# --- listing --------------------------------------------------------------------------


async def list_heads(context: Context, cursor: str | None) -> ListResourcesResult:
    """The newest checkpoint of every thread, last used first."""
    after = None if cursor is None else number(cursor)
    page = await listing.threads(context, ThreadsQuery(limit=PAGE, after=after))
    return ListResourcesResult(
        resources=[
            Resource(**_listed(thread, thread.head)) for thread in page if thread.head
        ],
        next_cursor=None if page.cursor is None else str(page.cursor),
    )


def source_of(tool: str, result: Result) -> str | None:
    """The thread that a result was read from, if the result was shortened."""
    if tool not in SOURCES or "note" not in result:
        return None
    thread_of, field = SOURCES[tool]
    return thread_of(result[field])


async def link_to(context: Context, name: str) -> ResourceLink | None:
    """A link to the newest state of a thread, if the thread still exists."""
    thread = await context.find_thread(name)
    if thread is None or thread.head is None:
        return None
    return ResourceLink(**_listed(thread, thread.head))


def _listed(thread: ThreadRecord, head: Checkpoint) -> dict[str, Any]:
    return {
        "uri": str(ResourceAddress(head.id)),
        "name": thread.id,
        "description": f"{thread.kind}, step {head.step}",
        "mime_type": JSON,
        "size": head.size,
    }
