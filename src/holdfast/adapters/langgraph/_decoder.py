"""Decodes the data of LangGraph's own serializer, with our table of types.

LangGraph imports and creates any type that a row names. Here a row is refused if it
names a type that is not in the table, or if it is a pickle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import ormsgpack
from langchain_core.messages import BaseMessage

from holdfast.adapters.langgraph import _known_types
from holdfast.adapters.langgraph._types import Types
from holdfast.importers import Damaged

# The extension codes of the serializer for types that msgpack does not know.
_ONE, _MANY, _NAMED, _METHOD, _OLD_MODEL, _MODEL, _ARRAY, _SNAPSHOT = range(8)

_Key = tuple[str, str]


class Decoder:
    """Decodes stored values; `Damaged` for those that cannot or must not be decoded."""

    def __init__(self, types: Types) -> None:
        self._classes: dict[_Key, Callable[..., Any]] = {
            (class_.__module__, class_.__name__): class_ for class_ in types.classes
        }
        self._classes |= _known_types.constructors()
        self._messages: dict[str, Callable[..., Any]] = {
            class_.__name__: class_
            for class_ in types.classes
            if issubclass(class_, BaseMessage)
        }
        self._refused: list[str] = []

    def read(self, kind: str | None, data: Any) -> Any:
        """A value; ``kind`` is the name of its encoding."""
        read = _KINDS.get(kind or "")
        if read is None:
            raise Damaged(f"is stored as {kind!r}, which is not read here")
        self._refused.clear()
        try:
            value = read(self, data)
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise Damaged(f"cannot be decoded: {error}") from None
        if self._refused:
            raise Damaged(
                f"holds the type {self._refused[0]}, which is not allowed here; if you"
                " know it, import with HoldfastSaver(store, allow=[...])"
            )
        return value

    def msgpack(self, data: bytes) -> Any:
        """The value of msgpack data."""
        option = ormsgpack.OPT_NON_STR_KEYS
        return ormsgpack.unpackb(data, ext_hook=self._made, option=option)

    def json(self, data: bytes) -> Any:
        """The value of JSON data, which early versions wrote."""
        return json.loads(data, object_hook=self._revived)

    def _made(self, code: int, data: bytes) -> Any:
        content = self.msgpack(data)
        if code == _SNAPSHOT:
            return _known_types.snapshot(content)
        if code == _ARRAY:
            return self._refuse("numpy.ndarray")
        module, name, given, *method = cast("Sequence[Any]", content)
        make = self._classes.get((module, name))
        if make is None:
            return self._refuse(f"{module}.{name}")
        return _CALLS[code](make, given, *method)

    def _revived(self, value: dict[str, Any]) -> Any:
        if value.get("type") != "constructor" or value.get("lc") not in (1, 2):
            return value
        *module, name = cast("Sequence[str]", value["id"])
        make = self._classes.get((".".join(module), name)) or self._messages.get(name)
        if make is None:
            return self._refuse(".".join(value["id"]))
        return make(*value.get("args") or (), **value.get("kwargs") or {})

    def _refuse(self, name: str) -> None:
        self._refused.append(name)


def _model(make: Any, fields: Mapping[str, Any], _method: str = "") -> Any:
    try:
        return make(**fields)
    except ValueError:
        # The stored fields may not fit the current class.
        if hasattr(make, "model_construct"):
            return make.model_construct(**fields)
        raise


def _from_text(make: Any, text: str, method: str) -> Any:
    if method != "fromisoformat":
        raise ValueError(f"{method} is not called here")
    return make.fromisoformat(text)


def _of_one(make: Any, given: Any) -> Any:
    return make(given)


def _of_many(make: Any, given: Sequence[Any]) -> Any:
    return make(*given)


def _of_named(make: Any, given: Mapping[str, Any]) -> Any:
    return make(**given)


_CALLS: dict[int, Callable[..., Any]] = {
    _ONE: _of_one,
    _MANY: _of_many,
    _NAMED: _of_named,
    _METHOD: _from_text,
    _MODEL: _model,
    _OLD_MODEL: _model,
}
_KINDS: dict[str, Callable[[Decoder, Any], Any]] = {
    "null": lambda _reader, _data: None,
    "bytes": lambda _reader, data: bytes(data),
    "bytearray": lambda _reader, data: bytearray(data),
    "msgpack": lambda reader, data: reader.msgpack(data),
    "json": lambda reader, data: reader.json(data),
}
