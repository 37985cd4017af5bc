"""LangGraph's long-term memory: each put of an item is a checkpoint of its thread.

The item ``likes`` in ``("users", "ann")`` is the thread ``item:users/ann/likes``. Its
lifetime is in the metadata of the checkpoint, the time of the last read in the journal.
Expired items are not returned.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import msgspec
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    get_text_at_path,
)

from holdfast.adapters.langgraph import _filter
from holdfast.adapters.langgraph._types import Types
from holdfast.adapters.langgraph._vectors import Embedded
from holdfast.backends import Checkpoint, Start, ThreadRecord, Threads
from holdfast.errors import Unstorable
from holdfast.operations import Context
from holdfast.operations.graphs import VECTORS, escaped, unescaped
from holdfast.operations.threads import (
    StateDraft,
    find_record,
    journal,
    prefetched,
    read_listed,
    removal,
    save,
    state_of,
)
from holdfast.operations.values import EPOCH, checked_name, encode_metadata

KIND = "item"
PREFIX = "item:"
READ = "read_at"
ANY = "*"

_MINUTE = 60_000_000
# The items in one request of a search that has to read all of them.
_MANY = 500
_START = Start(kind=KIND, anew=True)

# A namespace of the memory.
Labels = tuple[str, ...]


class StoredItem(msgspec.Struct, frozen=True):
    """An item and the options of the put in ``about``."""

    thread: ThreadRecord
    head: Checkpoint
    value: dict[str, Any]
    about: dict[str, Any]
    vectors: Mapping[str, bytes]
    score: float | None = None

    def as_search_item(self) -> SearchItem:
        """The item in LangGraph's form for results of a search."""
        namespace, key = labels_and_key(self.thread.id)
        return SearchItem(
            namespace=namespace,
            key=key,
            value=self.value,
            created_at=_moment(self.thread.created_at),
            updated_at=_moment(self.head.saved_at),
            score=self.score,
        )


def _moment(at: int) -> datetime:
    return EPOCH + timedelta(microseconds=at)


async def batch(
    context: Context,
    types: Types,
    ops: Sequence[Op],
    embedded: Embedded | None = None,
) -> list[Result]:
    """The results of operations, which run one after the other.

    None is run if the namespace of one is invalid. ``embedded`` are their vectors.
    """
    for op in ops:
        _check_labels(op)
    results: list[Result] = []
    for op in ops:
        if isinstance(op, GetOp):
            results.append(await _get(context, types, op))
        elif isinstance(op, PutOp):
            await _put(context, types, op, embedded)
            results.append(None)
        elif isinstance(op, SearchOp):
            results.append(await _search(context, types, op, embedded))
        else:
            results.append(await _list_namespaces(context, op))
    return results


def _check_labels(op: Op) -> None:
    """Raise LangGraph's error: its methods check labels, but its `batch` does not."""
    if isinstance(op, SearchOp):
        namespaces = [op.namespace_prefix]
    elif isinstance(op, ListNamespacesOp):
        namespaces = [condition.path for condition in op.match_conditions or ()]
    else:
        namespaces = [op.namespace]
    for namespace in namespaces:
        for label in cast("Sequence[object]", namespace):
            if not isinstance(label, str) or not label or {".", "\0"} & {*label}:
                raise InvalidNamespaceError(
                    f"the label {label!r} of the namespace {namespace!r} must be a text"
                    " that is not empty and holds neither a period nor a NUL"
                )


async def _get(context: Context, types: Types, op: GetOp) -> Item | None:
    thread = await find_record(context, item_name(op.namespace, op.key))
    item = await _stored(context, types, thread) if thread else None
    if item is None:
        return None
    await _refresh(context, [item] if op.refresh_ttl else [])
    found = item.as_search_item()
    return Item(
        value=found.value,
        key=found.key,
        namespace=found.namespace,
        created_at=found.created_at,
        updated_at=found.updated_at,
    )


async def _put(
    context: Context, types: Types, op: PutOp, embedded: Embedded | None
) -> None:
    name = item_name(op.namespace, op.key)
    if op.value is None:
        await removal.delete_threads(context, [name])
        return
    about = {"ttl": op.ttl, "index": op.index}
    how = save.Options(
        metadata=encode_metadata({k: v for k, v in about.items() if v is not None}),
        start=_START,
    )
    if VECTORS in op.value:
        raise Unstorable("value", f"must not have the key {VECTORS!r}; rename it")
    state = types.plain(op.value, "value")
    vectors = embedded.vectors(op) if embedded else {}
    if vectors:
        state = {**cast("dict[str, object]", state), VECTORS: vectors}
    await save.save(context, name, StateDraft(state), how)


async def _stored(
    context: Context, types: Types, thread: ThreadRecord
) -> StoredItem | None:
    """The item of a thread, ``None`` if it was deleted or has expired."""

    async def read(context: Context, thread: ThreadRecord) -> StoredItem:
        assert thread.head is not None
        found = await state_of(context, context.known(thread.id, thread.head))
        state = cast("dict[str, Any]", found)
        vectors = state.pop(VECTORS, {})
        about = thread.head.metadata
        return StoredItem(thread, thread.head, types.revive(state), about, vectors)

    if await _has_ended(context, thread):
        return None
    return await read_listed(context, thread, read)


async def _has_ended(context: Context, thread: ThreadRecord) -> bool:
    assert thread.head is not None
    minutes = thread.head.metadata.get("ttl")
    if minutes is None:
        return False
    read = await journal.recorded_one(context, thread.id, READ, 0, thread.head)
    last = max(thread.head.saved_at, cast("int", read))
    return context.clock() >= last + int(cast("float", minutes) * _MINUTE)


async def _refresh(context: Context, items: Iterable[StoredItem]) -> None:
    """Restart the lifetime of items that have one."""
    for item in items:
        if "ttl" in item.about:
            where = journal.JournalPlace(
                item.thread.id, _START, item.head, replace=True
            )
            entries = where.entries(context, {READ: context.clock()})
            await journal.record(context, where, entries)


async def _search(
    context: Context, types: Types, op: SearchOp, embedded: Embedded | None
) -> list[SearchItem]:
    found: list[StoredItem] = []
    # Without a filter or a query, read only as many items as are returned.
    enough = None if op.filter or op.query else op.offset + op.limit
    async for item in _each(context, types, within(op.namespace_prefix), enough):
        wanted = _wanted(item, op, embedded)
        if wanted is not None:
            found.append(wanted)
        if len(found) == enough:
            break
    found.sort(key=lambda item: -(item.score or 0.0))
    chosen = found[op.offset : op.offset + op.limit]
    await _refresh(context, chosen if op.refresh_ttl else [])
    return [item.as_search_item() for item in chosen]


async def _each(
    context: Context, types: Types, prefix: str, expected: int | None
) -> AsyncIterator[StoredItem]:
    """The items of which ``expected`` are needed, read many at a time."""
    size = min(expected or _MANY, _MANY)
    threads = await _threads(context, prefix)
    for start in range(0, len(threads), size):
        some = threads[start : start + size]
        reading = await prefetched(context, some, None)
        for thread in some:
            item = await _stored(reading, types, thread)
            if item is not None:
                yield item


def _wanted(
    item: StoredItem, op: SearchOp, embedded: Embedded | None
) -> StoredItem | None:
    if not _filter.matches(item.value, op.filter):
        return None
    if not op.query:
        return item
    if embedded is not None:
        score = embedded.score(item.vectors.values(), op.query)
    else:
        score = _score(item.value, item.about.get("index"), op.query) or None
    return None if score is None else msgspec.structs.replace(item, score=score)


async def _threads(context: Context, prefix: str) -> list[ThreadRecord]:
    """The threads of items, the last put first."""
    page = await context.backend.scan(Threads(kind=KIND, prefix=prefix))
    return sorted(page, key=lambda thread: -(thread.head.seq if thread.head else 0))


async def _list_namespaces(
    context: Context, op: ListNamespacesOp
) -> list[tuple[str, ...]]:
    threads = await _threads(context, PREFIX)
    living = [t.id for t in threads if not await _has_ended(context, t)]
    return _listed(living, op)


async def sweep(context: Context) -> int:
    """Delete the expired items and return their number."""
    threads = await _threads(context, PREFIX)
    ended = [thread.id for thread in threads if await _has_ended(context, thread)]
    return await removal.delete_threads(context, ended) if ended else 0


# --- names ----------------------------------------------------------------------------


def item_name(namespace: Sequence[str], key: str) -> str:
    """The name of an item's thread."""
    return checked_name(within(namespace) + _part(key), "item")


def within(namespace: Sequence[str]) -> str:
    """The prefix of the names of all items in a namespace and below it."""
    return PREFIX + "".join(f"{_part(label)}/" for label in namespace)


def labels_and_key(name: str) -> tuple[Labels, str]:
    """The namespace and the key of an item."""
    *namespace, key = map(unescaped, name.removeprefix(PREFIX).split("/"))
    return tuple(namespace), key


def _part(text: str) -> str:
    return escaped(text).replace("/", "%2f")


# --- search by words ------------------------------------------------------------------


def _score(value: object, index: object, query: str) -> float:
    """The share of the words of a query that an item contains, ignoring case.

    ``index`` limits the search to some paths; with ``False`` nothing is found.
    """
    words = query.casefold().split()
    if index is False or not words:
        return 0.0
    paths = cast("Sequence[str] | None", index)
    found = (text for path in paths or () for text in get_text_at_path(value, path))
    text = "\n".join(_texts(value) if paths is None else found).casefold()
    return sum(word in text for word in words) / len(words)


def _texts(value: object) -> Iterator[str]:
    """Every text in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in cast("Mapping[object, object]", value).values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[object]", value):
            yield from _texts(item)


# --- namespaces -----------------------------------------------------------------------


def _listed(names: Iterable[str], asked: ListNamespacesOp) -> list[Labels]:
    """The namespaces of items that an operation asks for, sorted, each once."""
    conditions = asked.match_conditions or ()
    every = {labels_and_key(name)[0] for name in names}
    found = sorted(
        {
            namespace[: asked.max_depth]
            for namespace in every
            if all(_meets(namespace, condition) for condition in conditions)
        }
    )
    return found[asked.offset : asked.offset + asked.limit]


def _meets(namespace: Labels, condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)]
    if condition.match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    return all(step in (ANY, label) for label, step in zip(part, path, strict=True))
