"""Paths to a value inside a state: ``messages[3].content``, or a JSON pointer.

A JSON pointer (RFC 6901) begins with a slash: ``/messages/3/content``. In the dotted
form a key that is not a plain word is written in brackets, as JSON: ``["a b"]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

import orjson

from holdfast.errors import Unstorable

# A key, or an index of a list; digits can be either.
Part = str | int

_DOTTED = re.compile(
    r"""
    \[ (?P<index>-?[0-9]{1,18}) \]
    | \[ (?P<quoted>"(?:[^"\\]|\\.)*") \]
    | (?:^|\.) (?P<key>[^.\[\]]+)
    """,
    re.VERBOSE,
)
_INDEX = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_NOTHING = object()


def parse_path(text: object) -> tuple[Part, ...]:
    """The parts of a path; none for the whole state."""
    if type(text) is not str:
        raise Unstorable("path", f"must be text, not {type(text).__name__}")
    if text in {"", "(root)"}:
        return ()
    if text.startswith("/"):
        return tuple(
            part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")
        )
    return tuple(_dotted(text))


def _dotted(text: str) -> Iterator[Part]:
    position = 0
    while position < len(text):
        match = _DOTTED.match(text, position)
        if match is None:
            reason = f"{text!r} is not like messages[3].content or /messages/3/content"
            raise Unstorable("path", reason)
        if match["index"]:
            yield int(match["index"])
        elif match["quoted"]:
            yield _unquoted(match["quoted"])
        else:
            yield match["key"]
        position = match.end()


def _unquoted(text: str) -> str:
    try:
        return cast("str", orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise Unstorable("path", f"{text} is not JSON: {error}") from None


def find_at(value: object, parts: Iterable[Part]) -> object:
    """The value at a path; raises `KeyError` if there is none."""
    for part in parts:
        value = _inside(value, part)
        if value is _NOTHING:
            raise KeyError(part)
    return value


def index_of(part: Part) -> int | None:
    """A part as an index of a list, ``None`` if it cannot be one."""
    if isinstance(part, int):
        return part
    return int(part) if _INDEX.fullmatch(part) else None


def _inside(value: object, part: Part) -> object:
    if isinstance(value, dict):
        mapping = cast("dict[Any, object]", value)
        found = mapping.get(part, _NOTHING)
        if found is not _NOTHING:
            return found
        # ``[3]`` can mean the key "3", and ``.3`` the key 3.
        other = str(part) if isinstance(part, int) else index_of(part)
        return mapping.get(other, _NOTHING)
    index = index_of(part)
    if isinstance(value, list | tuple) and index is not None:
        items = cast("list[object]", value)
        if -len(items) <= index < len(items):
            return items[index]
    return _NOTHING
