"""The types that need no permission: those of LangGraph, LangChain and Python."""

from __future__ import annotations

import ipaddress
import pathlib
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from functools import cache
from types import NoneType
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import langchain_core.messages.base
import langgraph.types
from langchain_core import messages
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.runnables.utils import AddableDict
from langgraph.checkpoint.serde import types as serde_types
from langgraph.store.base import GetOp, Item, SearchItem
from pydantic import SecretBytes, SecretStr

from holdfast.adapters.langgraph import _shapes
from holdfast.adapters.langgraph._shapes import Fields, NotStorable, Shape

# Types whose instances the codec encodes directly.
NATIVE: frozenset[type] = frozenset(
    {NoneType, bool, int, float, str, bytes, date, timedelta, Decimal, UUID}
)

_ROLES = {
    "Human": "user",
    "AI": "assistant",
    "System": "system",
    "Tool": "tool",
    "Function": "tool",
}
# Private, but savers have to store it; missing before LangGraph 1.2.
_SNAPSHOT: Any = getattr(serde_types, "_DeltaSnapshot", None)
# The type of `message.text`.
_TEXT: Any = getattr(langchain_core.messages.base, "TextAccessor", None)
# Stands for "no default": equal to no value of a field.
_NO_DEFAULT = object()
# The factories that a stored `defaultdict` may have.
_FACTORIES: dict[str, Any] = {
    factory.__name__: factory
    for factory in (list, dict, set, int, float, str, bool, tuple)
}


@cache
def shapes() -> dict[type, Shape]:
    """The shapes of all types that need no permission."""
    return {**_of_python(), **_of_langchain(), **_of_langgraph()}


# --- LangChain ------------------------------------------------------------------------


def _of_langchain() -> dict[type, Shape]:
    found: dict[type, Shape] = {Document: _shapes.shape_of(Document, "Document")}
    if _TEXT is not None:
        found[_TEXT] = _shapes.shape_of(_TEXT, "TextAccessor")
    for name in messages.__all__:
        class_: object = getattr(messages, name)
        if isinstance(class_, type) and issubclass(class_, BaseMessage):
            found[class_] = _message(class_)
    return found


def _message(class_: type[BaseMessage]) -> Shape:
    """The shape of a message: fields with their default are left out, a role added."""
    name = class_.__name__
    role = _ROLES.get(name.removesuffix("Chunk").removesuffix("Message"))
    shown = {} if role is None or "role" in class_.model_fields else {"role": role}
    beginnings = dict(_shapes.beginnings(class_))

    def dump(message: BaseMessage) -> Fields:
        found: Fields = {**shown}
        for field, value in message.__dict__.items():
            begins = beginnings.get(field, _NO_DEFAULT)
            if value is begins:
                continue
            if not (value or begins) and type(value) is type(begins):
                continue
            found[field] = value
        if message.__pydantic_extra__ or message.__pydantic_private__:
            found |= _shapes.beside(message)
        return found

    return Shape(name, dump, _shapes.model_loader(class_))


# --- LangGraph ------------------------------------------------------------------------


def _of_langgraph() -> dict[type, Shape]:
    found: dict[type, Shape] = {
        langgraph.types.Send: _send(),
        GetOp: _shapes.shape_of(GetOp, "GetOp"),
        Item: _item(Item, ("value", "key", "namespace", "created_at", "updated_at")),
        SearchItem: _item(
            SearchItem,
            ("value", "key", "namespace", "created_at", "updated_at", "score"),
        ),
    }
    for name in (
        "Interrupt",
        "Command",
        "Overwrite",
        "TimeoutPolicy",
        "StateSnapshot",
        "PregelTask",
    ):
        class_ = getattr(langgraph.types, name, None)
        if class_ is not None:
            found[class_] = _shapes.shape_of(class_, name)
    if _SNAPSHOT is not None:
        found[_SNAPSHOT] = _shapes.shape_of(_SNAPSHOT, "DeltaSnapshot")
    return found


def snapshot(value: object) -> object:
    """LangGraph's wrapper for the whole value of a delta channel."""
    if _SNAPSHOT is None:
        raise ValueError("it is of a newer LangGraph; upgrade langgraph")
    return _SNAPSHOT(value)


def _send() -> Shape:
    def dump(send: langgraph.types.Send) -> Fields:
        timeout = getattr(send, "timeout", None)
        beside = {} if timeout is None else {"timeout": timeout}
        return {"node": send.node, "arg": send.arg, **beside}

    return Shape("Send", dump, lambda fields: langgraph.types.Send(**fields))


def _item(class_: Any, names: tuple[str, ...]) -> Shape:
    def dump(item: object) -> Fields:
        return {name: getattr(item, name) for name in names}

    return Shape(class_.__name__, dump, lambda fields: class_(**fields))


# --- Python ---------------------------------------------------------------------------


def _of_python() -> dict[type, Shape]:
    return {
        timezone: Shape("timezone", _zone, lambda f: timezone(**f)),
        ZoneInfo: _of_one(ZoneInfo, lambda zone: zone.key),
        bytearray: _of_one(bytearray, bytes),
        deque: Shape("deque", _queue, lambda f: deque(f["items"], f["maxlen"])),
        OrderedDict: _of_one(OrderedDict, dict),
        Counter: _of_one(Counter, dict),
        AddableDict: _of_one(AddableDict, dict),
        defaultdict: Shape("defaultdict", _defaulting, _defaulted),
        re.Pattern: Shape("Pattern", _pattern, lambda f: re.compile(**f)),
        SecretStr: _of_one(SecretStr, lambda secret: secret.get_secret_value()),
        SecretBytes: _of_one(SecretBytes, lambda secret: secret.get_secret_value()),
        **{class_: _of_one(class_, str) for class_ in (*_ADDRESSES, *_PATHS)},
    }


def _of_one(class_: Any, value_of: Callable[[Any], object]) -> Shape:
    """The shape of a class whose constructor takes one value."""

    def dump(instance: object) -> Fields:
        return {"value": value_of(instance)}

    return Shape(class_.__name__, dump, lambda fields: class_(fields["value"]))


def _zone(zone: timezone) -> Fields:
    return {"offset": zone.utcoffset(None), "name": zone.tzname(None)}


def _queue(queue: deque[Any]) -> Fields:
    return {"items": list(queue), "maxlen": queue.maxlen}


def _pattern(pattern: re.Pattern[Any]) -> Fields:
    return {"pattern": pattern.pattern, "flags": pattern.flags}


def _defaulting(value: defaultdict[Any, Any]) -> Fields:
    factory = value.default_factory
    name = None if factory is None else getattr(factory, "__name__", "")
    if name is not None and _FACTORIES.get(name) is not factory:
        raise NotStorable("a defaultdict whose factory is not an empty builtin")
    return {"items": dict(value), "factory": name}


def _defaulted(fields: Fields) -> object:
    name = fields["factory"]
    return defaultdict(None if name is None else _FACTORIES[name], fields["items"])


def constructors() -> dict[tuple[str, str], Callable[..., Any]]:
    """The constructors in data of LangGraph's serializer, for types of the codec."""
    plain = (datetime, date, time, timedelta, UUID, Decimal, set, frozenset)
    found: dict[tuple[str, str], Callable[..., Any]] = {
        (class_.__module__, class_.__name__): class_ for class_ in plain
    }
    found["re", "compile"] = re.compile
    # Paths become those of this system; Python 3.13 has them in another module.
    for module in ("pathlib", "pathlib._local"):
        for name in ("Path", "PosixPath", "WindowsPath"):
            found[module, name] = pathlib.Path
    return found


_ADDRESSES: tuple[type, ...] = (
    ipaddress.IPv4Address,
    ipaddress.IPv4Interface,
    ipaddress.IPv4Network,
    ipaddress.IPv6Address,
    ipaddress.IPv6Interface,
    ipaddress.IPv6Network,
)
# Of the concrete paths only this system's: others cannot be created here.
_PATHS: tuple[type, ...] = (
    type(pathlib.Path()),
    pathlib.PurePosixPath,
    pathlib.PureWindowsPath,
)
