"""Times and ages as people write them: one grammar for references and options.

``2h``, ``3 days``, ``5 minutes ago``, ``10:00``, ``yesterday``, ``2026-11-15 10:00``.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from datetime import time as time_of_day

import msgspec

from holdfast._values.records import EPOCH

EXAMPLES = "2h, '3 days', 10:00, yesterday or '2026-11-15 10:00'"

_DAY = timedelta(days=1)
_MICROSECOND = timedelta(microseconds=1)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGE = re.compile(
    r"(?P<count>[0-9]{1,9}) ?"
    r"(?P<unit>s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:ours?)?|d(?:ays?)?|w(?:eeks?)?)"
    r"(?: ago)?",
    re.ASCII,
)
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?", re.ASCII)


class Ago(msgspec.Struct, frozen=True):
    """So many microseconds before now."""

    microseconds: int

    def when(self, now: int) -> int:
        """The time at this distance before ``now``, in microseconds."""
        return now - self.microseconds


class Until(msgspec.Struct, frozen=True):
    """A time, in microseconds."""

    at: int

    def when(self, now: int) -> int:  # noqa: ARG002 - as `Ago`
        return self.at


class Clock(msgspec.Struct, frozen=True):
    """The last time that the clock showed this, in UTC: microseconds of a day."""

    shown: int

    def when(self, now: int) -> int:
        """The last time before ``now`` when the clock showed this, in microseconds."""
        day = _DAY // _MICROSECOND
        return now - (now - self.shown) % day


Moment = Ago | Until | Clock
_WORDS: dict[str, Moment] = {
    "now": Ago(0),
    "today": Clock(0),
    "yesterday": Ago(_DAY // _MICROSECOND),
}


def parse_moment(text: str) -> Moment | None:
    """A time as people write it, ``None`` if the text is not a time.

    An age such as ``2h``, ``3 days`` or ``5 minutes ago``; ``now``, ``today`` (its
    beginning), ``yesterday`` (a day ago); a time of day such as ``10:00``; or a date
    and time in any form of ISO 8601. UTC if it names no zone.
    """
    return _WORDS.get(text) or _age(text) or _clock(text) or _iso(text)


def _age(text: str) -> Ago | None:
    found = _AGE.fullmatch(text)
    if found is None:
        return None
    try:
        age = timedelta(**{_UNITS[found["unit"][0]]: int(found["count"])})
    except OverflowError:
        return None
    return Ago(age // _MICROSECOND)


def _clock(text: str) -> Clock | None:
    if not _CLOCK.fullmatch(text):
        return None
    hour, _, rest = text.partition(":")
    try:
        shown = time_of_day.fromisoformat(f"{hour:0>2}:{rest}")
    except ValueError:
        return None
    passed = timedelta(hours=shown.hour, minutes=shown.minute, seconds=shown.second)
    return Clock(passed // _MICROSECOND)


def _iso(text: str) -> Until | None:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    time = time if time.tzinfo else time.replace(tzinfo=UTC)
    return Until((time - EPOCH) // _MICROSECOND)
