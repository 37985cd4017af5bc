"""Stored text made harmless for a terminal; `--json` uses only `escaped`."""

from __future__ import annotations

import re
import unicodedata

# Whole control sequences of a terminal: no part of them is left as text.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])"  # OSC, DCS, SOS, PM, APC ...
    r"[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # ... up to their end
)
# The other control characters, those that reverse text, and lone surrogates.
_DANGEROUS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e"
    "\u2066-\u2069\ufeff\ud800-\udfff]"
)
_BREAKS = re.compile(r"[\n\t]")
_LARGEST_BYTE = 0xFF


def harmless(text: str) -> str:
    """Text that cannot control a terminal; line breaks and tabs stay."""
    if text.isprintable():  # then none of its characters is one of those
        return text
    return _DANGEROUS.sub(_name, _SEQUENCES.sub("", text))


def one_line(text: str) -> str:
    """Harmless text without line breaks and tabs, which are shown as escapes."""
    if text.isprintable():
        return text
    return _BREAKS.sub(lambda found: repr(found[0])[1:-1], harmless(text))


def one_line_width(text: str) -> tuple[str, int]:
    """Text on one line, and how many columns it takes."""
    line = one_line(text)
    return line, width(line)


def escaped(json_text: str) -> str:
    """JSON in which dangerous characters are written as escapes: the same values."""
    return _DANGEROUS.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text)


def width(text: str) -> int:
    """The number of columns that a harmless line takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def cut(text: str, columns: int, ellipsis: str) -> str:
    """The beginning of a harmless line that fits."""
    if width(text) <= columns:
        return text
    room = columns - width(ellipsis)
    kept = 0
    for end, character in enumerate(text):
        kept += _columns(character)
        if kept > room:
            return text[:end] + ellipsis
    return text


def _columns(character: str) -> int:
    if unicodedata.combining(character) or character in "\u200b\u200c\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _name(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code <= _LARGEST_BYTE else f"<U+{code:04X}>"
