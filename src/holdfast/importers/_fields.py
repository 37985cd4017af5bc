"""The fields of a foreign record, taken one by one; the others stay in ``rest``."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

from holdfast._values.records import EPOCH
from holdfast._values.shortening import shortened
from holdfast.importers._reader import Damaged

SECOND = 1_000_000
EARLIEST = (datetime.min.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
LATEST = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)

_KINDS: dict[type, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    type(None): "null",
}
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):([0-5]\d|60)"
    r"(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)


class Moment(NamedTuple):
    """A time of the source in nanoseconds, and its original text."""

    nanoseconds: int
    text: str

    @property
    def at(self) -> int:
        """Microseconds."""
        return self.nanoseconds // 1000

    @property
    def remainder(self) -> str | None:
        """The original text, if microseconds cannot express it exactly."""
        return None if rendered(self.at) == self.text else self.text


class Fields:
    """The fields of an object of the source; taking one checks its type."""

    def __init__(self, record: object, what: str = "") -> None:
        if not isinstance(record, dict):
            raise Damaged(f"{what or 'it'} is {_kind(record)}, not an object")
        self.rest = dict(cast("dict[str, Any]", record))
        self._path = f"{what}." if what else ""

    def text(self, name: str) -> str:
        """A required text."""
        return cast("str", self._take(name, str))

    def number(self, name: str) -> int:
        """A required whole number."""
        return cast("int", self._take(name, int))

    def elements(self, name: str) -> list[Any]:
        """A list, empty if it is missing."""
        return cast("list[Any]", self._take(name, list, []))

    def objects(self, name: str) -> list[dict[str, Any]]:
        """A list of objects, empty if it is missing."""
        return self._all(name, dict)

    def texts(self, name: str) -> list[str]:
        """A list of texts, empty if it is missing."""
        return self._all(name, str)

    def mapping(self, name: str) -> dict[str, Any]:
        """An object, empty if it is missing."""
        return cast("dict[str, Any]", self._take(name, dict, {}))

    def maybe(self, name: str, kind: type) -> Any:
        """A value of a type, ``None`` if it is missing or null."""
        return self._take(name, kind, None)

    def seconds(self, name: str) -> int:
        """A time in whole seconds, as microseconds."""
        return _checked_time(self.number(name) * SECOND, self._path + name)

    def moment(self, name: str) -> Moment:
        """A time in the format of RFC 3339."""
        return parsed_moment(self.text(name), self._path + name)

    def drop(self, name: str, known: object) -> None:
        """Leave out a field whose value is already known."""
        if self.rest.get(name, known) == known:
            self.rest.pop(name, None)

    def extra(self) -> dict[str, Any]:
        """The fields that were not taken, for the ``origin`` of a save."""
        return {"extra": self.rest} if self.rest else {}

    def _all(self, name: str, kind: type) -> list[Any]:
        found = self.elements(name)
        for index, element in enumerate(found):
            if type(element) is not kind:
                text = f"is {_kind(element)}, not {_KINDS[kind]}"
                raise Damaged(f"{self._path}{name}[{index}] {text}")
        return found

    def _take(self, name: str, kind: type, *missing: object) -> object:
        where, there = self._path + name, name in self.rest
        value = self.rest.pop(name, None)
        if value is None and missing:
            return missing[0]
        if type(value) is not kind:
            found = f"{_kind(value)}, not {_KINDS[kind]}" if there else "missing"
            raise Damaged(f"{where} is {found}")
        return value


def parsed_moment(text: str, where: str) -> Moment:
    """The time of an RFC 3339 text, with digits beyond microseconds."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise Damaged(f"{where} is {shortened(text, 40)!r}, not a time")
    date, minute, second, fraction, zone = match.groups()
    try:
        start = datetime.fromisoformat(f"{date}T{minute}:00{zone.upper()}")
    except ValueError as error:
        raise Damaged(f"{where} is {text!r}, not a time: {error}") from None
    # A leap second (60) is read as the first second of the next minute.
    whole = (start - EPOCH) // timedelta(seconds=1) + int(second)
    nanoseconds = whole * 10**9 + int((fraction or "").ljust(9, "0"))
    _checked_time(nanoseconds // 1000, where)
    return Moment(nanoseconds, text)


def rendered(at: int) -> str:
    """A time as the sources write it: with zero, three or six decimals."""
    moment = (EPOCH + timedelta(microseconds=at)).replace(tzinfo=None)
    exact = at % SECOND and at % 1000
    digits = "microseconds" if exact else "milliseconds" if at % SECOND else "seconds"
    return f"{moment.isoformat(timespec=digits)}Z"


def _checked_time(at: int, where: str) -> int:
    if not EARLIEST <= at <= LATEST:
        raise Damaged(f"{where} is beyond the calendar")
    return at


def _kind(value: object) -> str:
    return _KINDS.get(type(value), type(value).__name__)
