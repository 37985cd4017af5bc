"""Stored bytes as JSON that a person can read, and back to exactly the same bytes.

Nearly all stored bytes are JSON, or elements of a JSON list joined by commas: they
stand in a line as they are. What is not becomes a string that says what it is.
"""

from __future__ import annotations

from base64 import b64decode, b64encode

import msgspec
from msgspec import Raw

TEXT, BASE64 = "text:", "base64:"
# Pieces of a long text may begin and end within a character.
LONGEST_CHARACTER = 4

_value = msgspec.json.Decoder(dict[str, Raw])
_string = msgspec.json.Decoder(str)


def shown(data: bytes) -> Raw:
    """A JSON text as itself, anything else as a string."""
    if _is_json(data) and not data.startswith((b'"text:', b'"base64:')):
        return Raw(data)
    return _shown_otherwise(data)


def unshown(raw: Raw) -> bytes:
    """The inverse of `shown`."""
    text = bytes(raw)
    return _hidden(text) if text.startswith((b'"text:', b'"base64:')) else text


def shown_elements(data: bytes) -> Raw:
    """The elements of a list as a list, anything else as a string."""
    listed = b"[%b]" % data
    return Raw(listed) if _is_json(listed) else _shown_otherwise(data)


def unshown_elements(raw: Raw) -> bytes:
    """The inverse of `shown_elements`."""
    text = bytes(raw)
    return text[1:-1] if text.startswith(b"[") else _hidden(text)


def _is_json(text: bytes) -> bool:
    """Whether a text can stand in a line, and would be found in it as it is."""
    try:
        text.decode()
        found = _value.decode(b'{"":%b}' % text)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return False
    return len(found) == 1 and bytes(found[""]) == text and b"\n" not in text


def _shown_otherwise(data: bytes) -> Raw:
    for start in range(LONGEST_CHARACTER):
        for end in range(len(data), len(data) - LONGEST_CHARACTER, -1):
            try:
                text = data[start:end].decode()
            except UnicodeDecodeError:
                continue
            return _quoted(f"{TEXT}{data[:start].hex()}:{data[end:].hex()}:{text}")
    return _quoted(BASE64 + b64encode(data).decode())


def _hidden(string: bytes) -> bytes:
    text = _string.decode(string)
    if text.startswith(BASE64):
        return b64decode(text.removeprefix(BASE64), validate=True)
    start, end, middle = text.removeprefix(TEXT).split(":", 2)
    return bytes.fromhex(start) + middle.encode() + bytes.fromhex(end)


def _quoted(text: str) -> Raw:
    return Raw(msgspec.json.encode(text))
