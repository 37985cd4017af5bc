"""The identity of tool calls: two calls with the same one mean the same effect.

A model that is asked again after a rewind makes the same call with a new id, and with
new values where it has to invent some. The identity of a call leaves those out.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final, cast

import orjson

MASK: Final = "\N{LOWER ONE EIGHTH BLOCK}"
DIGEST_LENGTH: Final = 32
# Up to here a float is exact as an integer. Integers above stay exact here, while
# RFC 8785 would round them.
LARGEST_EXACT: Final = 1 << 53
# The places before and behind the point up to which JavaScript writes no exponent.
LONGEST_PLAIN: Final = 21
SMALLEST_PLAIN: Final = -6

_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
# A text of digits alone is rather the number of an account or a card.
_HEXADECIMAL = re.compile(r"(0x)?(?=.*[0-9])(?=.*[a-f])[0-9a-f]{16,}", re.IGNORECASE)
_BASE64 = re.compile(
    r"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9+/_-]{20,}={0,2}", re.ASCII
)
# A path, a branch or a name such as "feature/JIRA-12-addLogin" does not look generated.
_NAME = r"(?:[A-Z]+|[A-Z]?[a-z]+(?:[A-Z][a-z]{2,})*)?[0-9]*"
_NAMES = re.compile(rf"{_NAME}(?:[/_+-]{_NAME})*")
_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}([.,]\d+)?)?\s*(Z|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE,
)
_GENERATED_NAMES = frozenset(
    {"ref", "reference", "nonce", "requestid", "idempotencykey", "timestamp"}
)
_WORD = re.compile(r"[^0-9]*")


def identity(tool: str, parts: object) -> str:
    """A digest of a tool's name and of what makes a call of it the same effect."""
    text = f"{tool}\0{canonical(parts)}"
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[
        :DIGEST_LENGTH
    ]


def masked(arguments: object) -> object:
    """Arguments without the values that look generated."""
    if isinstance(arguments, Mapping):
        fields = cast("Mapping[object, object]", arguments)
        return {name: _masked(name, value) for name, value in fields.items()}
    if isinstance(arguments, list | tuple):
        return [masked(part) for part in cast("Iterable[object]", arguments)]
    return MASK if _looks_generated(arguments) else arguments


def _masked(name: object, value: object) -> object:
    is_single = not isinstance(value, Mapping | list | tuple)
    plain = re.sub(r"[^a-z]", "", str(name).lower())
    if is_single and plain in _GENERATED_NAMES:
        return MASK
    if plain == "id" and isinstance(value, str) and not _WORD.fullmatch(value):
        # A number or a plain word under this name says which thing is meant.
        return MASK
    return masked(value)


def _looks_generated(value: object) -> bool:
    if not isinstance(value, str):
        return False
    if any(form.fullmatch(value) for form in (_UUID, _HEXADECIMAL, _TIME)):
        return True
    return bool(_BASE64.fullmatch(value)) and not _NAMES.fullmatch(value)


# --- canonical JSON, as RFC 8785 has it -----------------------------------------------


def canonical(value: object) -> str:
    """The one JSON text of a value: keys sorted, numbers in their shortest form.

    A value that JSON does not have, such as bytes or a date, becomes Python's own text.
    """
    if isinstance(value, Mapping):
        fields = cast("Mapping[object, object]", value)
        named = {str(name): part for name, part in fields.items()}
        ordered = sorted(named, key=_utf16)
        return f"{{{','.join(f'{_text(n)}:{canonical(named[n])}' for n in ordered)}}}"
    if isinstance(value, list | tuple):
        parts = cast("Iterable[object]", value)
        return f"[{','.join(map(canonical, parts))}]"
    if value is None or isinstance(value, bool):
        return orjson.dumps(value).decode()
    if isinstance(value, int | float | Decimal):
        return _number(value)
    return _text(value if isinstance(value, str) else repr(value))


def _utf16(name: str) -> bytes:
    return name.encode("utf-16-be", errors="surrogatepass")


def _text(text: str) -> str:
    try:
        return orjson.dumps(text).decode()
    except TypeError:  # a surrogate without its partner
        return f'"{text}"'


def _number(value: float | Decimal) -> str:
    if isinstance(value, int):
        return str(int(value))
    if not math.isfinite(value):
        return _text(str(value))
    whole = int(value)
    if value == whole and abs(whole) < LARGEST_EXACT:
        return str(whole)
    return _shortest(float(value))


def _shortest(value: float) -> str:
    """The text that JavaScript writes, which RFC 8785 demands."""
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text, point = "".join(map(str, digits)), len(digits) + exponent
    sign = "-" if value < 0 else ""
    if 0 < point <= LONGEST_PLAIN:
        whole = text[:point].ljust(point, "0")
        return sign + whole + (f".{text[point:]}" if len(text) > point else "")
    if SMALLEST_PLAIN < point <= 0:
        return f"{sign}0.{'0' * -point}{text}"
    rest = f".{text[1:]}" if len(text) > 1 else ""
    return f"{sign}{text[0]}{rest}e{point - 1:+d}"


def arguments_named(names: Iterable[str], arguments: object) -> list[object]:
    """The values of some arguments, ``None`` for one that is missing."""
    fields = cast("dict[str, object]", arguments) if type(arguments) is dict else {}
    return [fields.get(name) for name in names]
