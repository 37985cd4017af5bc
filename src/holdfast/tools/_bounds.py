"""Results that fit into a model's context: plain JSON values, shortened if long.

A shortened value ends with a mark, and its result has a note how to get the rest. A
character is never cut in half.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Mapping
from math import isfinite
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import msgspec

from holdfast._values.records import Page
from holdfast._values.shortening import ELLIPSIS
from holdfast.tools._errors import bad_cursor
from holdfast.views.documents import utc

T = TypeVar("T")
Shown: TypeAlias = dict[str, Any]

# Bytes of JSON in a whole result, and in one of several values.
LARGEST = 32_000
LARGEST_VALUE = 8_000
# Reserved for the cursor, notes and other small fields of a result.
BRIEF = 2_000
# Integers up to here are exact in every JSON reader, and are printed as decimals.
EXACT_BITS, PRINTED_BITS = 63, 2048
MOST_NOTED = 10


class Cut(NamedTuple):
    """The shown characters of a text, and items of a list or object."""

    characters: int
    items: int


WHOLE = Cut(1 << 62, 1 << 62)
LADDER = (
    WHOLE,
    Cut(24_000, 1000),
    Cut(12_000, 500),
    Cut(6000, 250),
    Cut(3000, 100),
    Cut(1000, 50),
    Cut(300, 20),
    Cut(100, 10),
    Cut(50, 5),
)


# --- plain values ---------------------------------------------------------------------


def plain(value: object, cut: Cut = WHOLE) -> Any:
    """Any stored value as a JSON value to read; it cannot be decoded again."""
    if isinstance(value, str):
        return _text(value, cut)
    if isinstance(value, Mapping):
        return _object(cast("Mapping[object, object]", value), cut)
    if isinstance(value, list | tuple | set | frozenset):
        return _list(list(cast("list[object]", value)), cut)
    return _scalar(value)


def _text(text: str, cut: Cut) -> str:
    more = len(text) - cut.characters
    shown = text if more <= 0 else text[: cut.characters]
    # Half a surrogate pair can be stored, but other programs cannot read it.
    shown = shown.encode("utf-8", "replace").decode()
    return shown if more <= 0 else f"{shown}{ELLIPSIS} [+{more} characters]"


def _list(items: list[object], cut: Cut) -> list[Any]:
    shown = [plain(item, cut) for item in items[: cut.items]]
    more = len(items) - cut.items
    return shown if more <= 0 else [*shown, f"{ELLIPSIS} [+{more} items]"]


def _object(fields: Mapping[object, object], cut: Cut) -> Shown:
    names = list(fields)[: cut.items]
    shown = {_text(str(name), cut): plain(fields[name], cut) for name in names}
    more = len(fields) - cut.items
    return shown if more <= 0 else {**shown, ELLIPSIS: f"[+{more} keys]"}


def _scalar(value: object) -> Any:
    if isinstance(value, bytes):
        return f"[{len(value)} bytes]"
    if isinstance(value, int) and value.bit_length() > EXACT_BITS:
        return str(value) if value.bit_length() <= PRINTED_BITS else hex(value)
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value if isinstance(value, int | float | None) else str(value)


def moment(at: object) -> Any:
    """A time in microseconds as text, if it is one and within the calendar."""
    time = utc(at) if isinstance(at, int | float) else None
    return plain(at) if time is None else f"{time:%Y-%m-%dT%H:%M:%SZ}"


# --- what fits ------------------------------------------------------------------------


def size(value: object) -> int:
    """The bytes of JSON that a plain value takes."""
    return len(msgspec.json.encode(value))


def shortened(value: object, room: int = LARGEST_VALUE) -> Any:
    """A value as a JSON value, cut until it fits."""
    for cut in LADDER:
        shown = plain(value, cut)
        if size(shown) <= room:
            return shown
    text = as_text(plain(value, LADDER[-1]))
    return f"{text[: fitting(text, 0, room - 40)]}{ELLIPSIS} [+more]"


def shown_fields(values: Mapping[str, object], rooms: Mapping[str, int]) -> Shown:
    """The fields named in ``rooms``, each cut to its room."""
    return {name: shortened(values[name], room) for name, room in rooms.items()}


def cut_fields(shown: Shown, values: Mapping[str, object]) -> list[str]:
    """The names of the fields that were shortened."""
    return [name for name, value in shown.items() if value != plain(values[name])]


def note_of_cuts(tool: str, parts: list[str]) -> Shown:
    """A note how to get the values that were shortened, if there are any."""
    if not parts:
        return {}
    more = f" and {len(parts) - MOST_NOTED} more" if len(parts) > MOST_NOTED else ""
    names = ", ".join(parts[:MOST_NOTED]) + more
    text = f"Shortened: {names}. Call {tool} with one of these as part for all of it."
    return {"note": text}


def as_text(value: object) -> str:
    """A plain value as text: a text as it is, any other value as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def fitting(text: str, start: int, room: int) -> int:
    """The end of the longest piece of a text from ``start`` that fits."""
    most = min(len(text) - start, room)
    count = bisect_right(
        range(1, most + 1), room, key=lambda n: size(text[start : start + n])
    )
    return start + count


def piece(about: Shown, value: object, cursor: str | None) -> Shown:
    """A value, or as much of its text as fits, starting at a cursor."""
    found = plain(value)
    start = 0 if cursor is None else number(cursor)
    room = LARGEST - BRIEF - size(about)
    if start == 0 and size(found) <= room:
        return {**about, "value": found}
    text = as_text(found)
    if start > len(text):
        raise bad_cursor()
    end = fitting(text, start, room)
    return {
        **about,
        "format": "text" if isinstance(found, str) else "json",
        "piece": text[start:end],
        "from": start,
        "total": len(text),
        "cursor": str(end) if end < len(text) else None,
    }


def number(cursor: str, bits: int = 62) -> int:
    """The number that a cursor stands for."""
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= bits):
        raise bad_cursor()
    found = int(cursor)
    if found.bit_length() > bits:
        raise bad_cursor()
    return found


async def fitting_page(
    fetch: Callable[[int], Awaitable[Page[T]]], show: Callable[[T], Shown], limit: int
) -> tuple[list[Shown], str | None]:
    """The first items that fit, and the cursor after the last of them."""
    while True:
        page = await fetch(limit)
        shown = [show(item) for item in page]
        count = count_fitting(shown, LARGEST - BRIEF)
        if count == len(shown):
            return shown, None if page.cursor is None else str(page.cursor)
        # Only the store knows the cursor of a page, so a shorter page is fetched.
        limit = count


def count_fitting(items: list[Shown], room: int) -> int:
    """The number of first items that fit; every item fits alone."""
    for count, item in enumerate(items):
        room -= size(item) + 1
        if room < 0:
            return max(count, 1)
    return len(items)
