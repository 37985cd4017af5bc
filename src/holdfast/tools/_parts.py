"""Parts of a record by name: a field, or one value in a field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from holdfast.tools._errors import Refusal, echo, suggestion

# Longer than the number of anything that can be stored.
MOST_DIGITS = 12


def part_of(fields: Mapping[str, object], part: str) -> object:
    """The value of a part such as ``state``, ``state.key`` or ``messages.12``."""
    name, dot, key = part.partition(".")
    if name not in fields:
        raise _missing(part, list(fields))
    value = fields[name]
    if not dot:
        return value
    if isinstance(value, Mapping):
        return _value(cast("Mapping[object, object]", value), part, key)
    if isinstance(value, list | tuple):
        return _item(cast("Sequence[object]", value), part, key)
    raise _missing(part, [name])


def _value(values: Mapping[object, object], part: str, key: str) -> object:
    by_text = {str(name): value for name, value in values.items()}
    if key in by_text:
        return by_text[key]
    field = part.partition(".")[0]
    raise _missing(part, [f"{field}.{name}" for name in by_text])


def _item(items: Sequence[object], part: str, key: str) -> object:
    is_number = key.isascii() and key.isdigit() and len(key) <= MOST_DIGITS
    if is_number and int(key) < len(items):
        return items[int(key)]
    field, last = part.partition(".")[0], len(items) - 1
    ends = f"{field}.0 to {field}.{last}" if items else "nothing in it"
    raise _refusal(part, f"There is {ends}. ")


def _missing(part: str, known: list[str]) -> Refusal:
    return _refusal(part, suggestion(part, known, most=10))


def _refusal(part: str, hint: str) -> Refusal:
    message = f"part: there is no {echo(part)}"
    return Refusal("not_found", message, f"{hint}Null gives everything.")
