"""Texts that a backend can look for in the encoded metadata of threads."""

from __future__ import annotations

from typing import Any

from holdfast._values import codec

# Up to here an equal int and float begin with the same digits.
_EXACT = 10**15


def texts_of(key: object, value: Any) -> tuple[bytes, ...]:
    """Texts of which one is in all metadata that have an item equal to this one.

    Other metadata may have one too: what a backend finds has to be compared. Equal
    values can be stored differently, a `Decimal` as a tagged value for example.
    """
    if type(key) is not str:
        return (codec.MARKER,)
    start = codec.encode(key) + b":"
    return *(start + text for text in _beginnings(value)), codec.MARKER


def _beginnings(value: Any) -> tuple[bytes, ...]:
    """The beginnings of the texts of all values that equal this one and have no tag."""
    if value is None or type(value) is str:
        return (codec.encode(value),)
    if type(value) not in (bool, int, float) or not abs(value) < _EXACT:
        return (b"",)
    if value == 0:
        return b"0", b"-0", b"false"
    text = codec.encode(int(value) if value == int(value) else value)
    return (text, b"true") if value == 1 else (text,)
