"""Items of LangGraph's long-term memory: where they are, and which ones are meant.

An item is a thread: ``item:users/ann/likes`` is ``likes`` in ``("users", "ann")``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from langgraph.store.base import ListNamespacesOp, MatchCondition, get_text_at_path

from holdfast._values.records import checked_name
from holdfast.adapters.langgraph._names import escaped, unescaped
from holdfast.errors import Unstorable

KIND = "item"
PREFIX = "item:"
ANY = "*"

Namespace = tuple[str, ...]


def item_name(namespace: Sequence[str], key: str) -> str:
    """The name of an item's thread."""
    return checked_name(within(namespace) + _part(key), "item")


def within(namespace: Sequence[str]) -> str:
    """What the names of all items in a namespace and below it begin with."""
    return PREFIX + "".join(f"{_part(label)}/" for label in namespace)


def place_of(name: str) -> tuple[Namespace, str]:
    """The namespace and the key of an item."""
    *namespace, key = map(unescaped, name.removeprefix(PREFIX).split("/"))
    return tuple(namespace), key


def _part(text: str) -> str:
    return escaped(text).replace("/", "%2f")


# --- filters --------------------------------------------------------------------------


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value is as a filter says."""
    return all(_is_as(item_at(value, k), told) for k, told in (wanted or {}).items())


def item_at(value: Mapping[str, Any], key: str) -> object:
    """An item by its key, or by a path such as ``user.name``."""
    if key in value:
        return value[key]
    found: object = value
    for step in key.split("."):
        if not isinstance(found, Mapping):
            return None
        found = cast("Mapping[str, object]", found).get(step)
    return found


def _is_as(value: object, told: object) -> bool:
    if not isinstance(told, Mapping):
        return _plain(value) == _plain(told)
    conditions = cast("Mapping[str, object]", told)
    if any(name.startswith("$") for name in conditions):
        return all(_holds(value, name, by) for name, by in conditions.items())
    return isinstance(value, Mapping) and matches(
        cast("Mapping[str, Any]", value), conditions
    )


def _plain(value: object) -> object:
    return list(cast("tuple[object, ...]", value)) if type(value) is tuple else value


def _holds(value: object, name: str, by: object) -> bool:
    if name == "$eq":
        return _plain(value) == _plain(by)
    if name == "$ne":
        return _plain(value) != _plain(by)
    if name not in _COMPARISONS:
        known = ", ".join(["$eq", "$ne", *_COMPARISONS])
        raise Unstorable("filter", f"there is no operator {name!r}; use one of {known}")
    numbers = isinstance(value, int | float) and isinstance(by, int | float)
    texts = isinstance(value, str) and isinstance(by, str)
    return (numbers or texts) and _COMPARISONS[name](value, by)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


# --- searching by words ---------------------------------------------------------------


def score(value: object, index: object, query: str) -> float:
    """The share of the words of a query that an item holds, in any case.

    ``index`` says where to look: nowhere, or at the paths it lists.
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


def listed(names: Iterable[str], asked: ListNamespacesOp) -> list[Namespace]:
    """The namespaces of items that were asked for, in order, each once."""
    conditions = asked.match_conditions or ()
    every = {place_of(name)[0] for name in names}
    found = sorted(
        {
            namespace[: asked.max_depth]
            for namespace in every
            if all(_meets(namespace, condition) for condition in conditions)
        }
    )
    return found[asked.offset : asked.offset + asked.limit]


def _meets(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)]
    if condition.match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    return all(told in (ANY, label) for label, told in zip(part, path, strict=True))
