"""A state as a tree that is opened node by node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Annotated, Any, cast

import msgspec

from holdfast._engine.context import Context
from holdfast._values.paths import parse_path
from holdfast.diff import excerpt
from holdfast.views.growth import size_of
from holdfast.views.showing import PageSize, Position, Showing
from holdfast.views.state_values import LazyList, StateReader, decoded, reader_of

# What a listing of all values opens at most; larger values stay closed.
LARGEST_READ = 256 << 10
MOST_READ = 2 << 20
# The most children of a list or mapping that is opened with its parent.
MOST_INNER = 20
_NAMES: dict[type, str] = {
    dict: "object",
    list: "array",
    LazyList: "array",
    str: "text",
    bool: "boolean",
    type(None): "null",
}


_CONTAINERS = (dict, list, tuple, set, frozenset, LazyList)


class TreeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a state, its depth, and a page of its children."""

    checkpoint: str
    path: str = ""
    depth: Annotated[int, msgspec.Meta(le=5)] = 2
    limit: PageSize = 100
    offset: Position = 0


async def state_document(
    context: Context, query: TreeQuery, showing: Showing
) -> dict[str, Any]:
    """One node of a state with its children."""
    reader = await reader_of(context, query.checkpoint)
    is_root = not parse_path(query.path) and reader.is_mapping
    if is_root:
        node = await _root(reader, query, showing)
    else:
        value = await reader.at(query.path)
        path = "" if not parse_path(query.path) else pointer(parse_path(query.path))
        node = TreeNodes(showing).node(value, path, query)
    return {"checkpoint": reader.checkpoint.id, "path": query.path, "value": node}


async def _root(
    reader: StateReader, query: TreeQuery, showing: Showing
) -> dict[str, Any]:
    nodes = TreeNodes(showing)
    children: list[dict[str, Any]] = []
    left = MOST_READ
    names = list(reader.stored)[query.offset : query.offset + query.limit]
    for name in names:
        size = size_of(reader.stored[name])
        path = pointer((showing.whole(name),))
        if size > min(left, LARGEST_READ):
            child = await _closed(reader, name)
        else:
            left -= size
            child = nodes.node(await reader.value(name), path, inner(query))
        named = {"key": showing.line(name), "path": path, "bytes": size}
        children.append({**named, **child})
    return {
        "type": "object",
        "size": len(reader.stored),
        "bytes": reader.checkpoint.size,
        "preview": "",
        "children": children,
        "next": _next(len(reader.stored), query),
    }


async def _closed(reader: StateReader, name: str) -> dict[str, Any]:
    """A value that is too large to be opened with its parent."""
    text = await reader.text(name)
    if text[:1] == b"[":
        return {"type": "array", "size": len(LazyList(text)), "preview": ""}
    if text[:1] == b"{":
        found = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        return {"type": "object", "size": len(found), "preview": ""}
    return {"type": "text", "size": len(text), "preview": ""}


def inner(query: TreeQuery) -> TreeQuery:
    """The query for a child."""
    limit = min(query.limit, MOST_INNER)
    return TreeQuery(
        checkpoint=query.checkpoint, depth=query.depth - 1, limit=limit, offset=0
    )


class TreeNodes(msgspec.Struct, frozen=True):
    """Makes nodes of values."""

    showing: Showing

    def node(self, value: object, path: str, query: TreeQuery) -> dict[str, Any]:
        """A value with its children, as deep as it is asked for."""
        size = _size(value)
        shown: dict[str, Any] = {"type": _type(value), "size": size}
        if not is_container(value):
            text = self.showing.text(value) if isinstance(value, str) else None
            return {**shown, "preview": self._preview(value), "value": text}
        if query.depth <= 0:
            return {**shown, "preview": self._preview(value)}
        children = [
            self._child(key, item, path, query) for key, item in _children(value, query)
        ]
        following = _next(size or 0, query)
        return {**shown, "preview": "", "children": children, "next": following}

    def _child(
        self, key: object, item: object, path: str, query: TreeQuery
    ) -> dict[str, Any]:
        # Where a key is redacted its path is too: then the node cannot be opened.
        here = path + pointer((self.showing.whole(str(key)),))
        shown = key if isinstance(key, int) else self.showing.line(str(key))
        return {"key": shown, "path": here, **self.node(item, here, inner(query))}

    def _preview(self, value: object) -> str:
        if isinstance(value, str):
            return self.showing.line(value)
        if self.showing.redact is None or not is_container(value):
            value = decoded(value)
            return self.showing.line(excerpt(value))
        return ""  # the texts in it would have to be redacted one by one


def is_container(value: object) -> bool:
    return isinstance(value, _CONTAINERS)


def pointer(parts: Sequence[object]) -> str:
    """A path as a JSON pointer."""
    texts = (str(part).replace("~", "~0").replace("/", "~1") for part in parts)
    return "".join(f"/{text}" for text in texts)


def _children(value: object, query: TreeQuery) -> Iterator[tuple[object, object]]:
    items: Iterator[tuple[object, object]]
    if isinstance(value, Mapping):
        items = iter(cast("Mapping[object, object]", value).items())
    elif isinstance(value, AbstractSet):
        items = enumerate(sorted(cast("AbstractSet[object]", value), key=repr))
    else:
        listed = cast("Sequence[object]", value)
        return iter(
            (index, listed[index])
            for index in range(
                query.offset, min(query.offset + query.limit, len(listed))
            )
        )
    return islice(items, query.offset, query.offset + query.limit)


def _size(value: object) -> int | None:
    sized = isinstance(value, (*_CONTAINERS, str, bytes))
    return len(cast("Sequence[object]", value)) if sized else None


def _type(value: object) -> str:
    name = _NAMES.get(type(value))
    if name is None and isinstance(value, int | float):
        return "number"
    return name or type(value).__name__


def _next(total: int, query: TreeQuery) -> int | None:
    following = query.offset + query.limit
    return following if following < total else None
