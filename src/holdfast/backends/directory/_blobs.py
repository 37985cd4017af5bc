"""Stored bytes as JSON that a person can read, and back to exactly the same bytes.

Nearly all stored bytes are JSON, or elements of a JSON list joined by commas: they are
written into a line unchanged. Other bytes become a string with a prefix that says how
they are encoded.
"""

from __future__ import annotations

from base64 import b64decode, b64encode

import msgspec
from msgspec import Raw

TEXT, BASE64 = "text:", "base64:"
# A segment of a long text may start and end within a character.
LONGEST_CHARACTER = 4

_value = msgspec.json.Decoder(dict[str, Raw])
_string = msgspec.json.Decoder(str)


def as_json(data: bytes) -> Raw:
    """A JSON text as itself, anything else as a string."""
    if _is_json(data) and not data.startswith((b'"text:', b'"base64:')):
        return Raw(data)
    return _as_string(data)


def from_json(raw: Raw) -> bytes:
    """The inverse of `as_json`."""
    text = bytes(raw)
    return _from_string(text) if text.startswith((b'"text:', b'"base64:')) else text


def elements_as_json(data: bytes) -> Raw:
    """The elements of a list as a list, anything else as a string."""
    listed = b"[%b]" % data
    return Raw(listed) if _is_json(listed) else _as_string(data)


def elements_from_json(raw: Raw) -> bytes:
    """The inverse of `elements_as_json`."""
    text = bytes(raw)
    return text[1:-1] if text.startswith(b"[") else _from_string(text)


def _is_json(text: bytes) -> bool:
    """True if a text can be part of a line, and is read back from it unchanged."""
    try:
        text.decode()
        found = _value.decode(b'{"":%b}' % text)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return False
    return len(found) == 1 and bytes(found[""]) == text and b"\n" not in text


def _as_string(data: bytes) -> Raw:
    for start in range(LONGEST_CHARACTER):
        for end in range(len(data), len(data) - LONGEST_CHARACTER, -1):
            try:
                text = data[start:end].decode()
            except UnicodeDecodeError:
                continue
            return _quoted(f"{TEXT}{data[:start].hex()}:{data[end:].hex()}:{text}")
    return _quoted(BASE64 + b64encode(data).decode())


def _from_string(string: bytes) -> bytes:
    text = _string.decode(string)
    if text.startswith(BASE64):
        return b64decode(text.removeprefix(BASE64), validate=True)
    start, end, middle = text.removeprefix(TEXT).split(":", 2)
    return bytes.fromhex(start) + middle.encode() + bytes.fromhex(end)


def _quoted(text: str) -> Raw:
    return Raw(msgspec.json.encode(text))
