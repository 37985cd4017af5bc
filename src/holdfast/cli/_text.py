"""Numbers, sizes, times, small mappings and errors as text for people."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from holdfast.diff import excerpt
from holdfast.views.documents import utc

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
# A unit, its seconds, and the age in seconds from which the next one is used.
_AGES = (
    ("s", 1, _MINUTE),
    ("m", _MINUTE, _HOUR),
    ("h", _HOUR, 2 * _DAY),
    ("d", _DAY, 60 * _DAY),
)
_DATE = len("2026-11-15")
_UNITS = ("B", "kB", "MB", "GB", "TB")
_STEP = 1000
# Characters with a meaning for a shell.
_QUOTED = frozenset(" \"!#$&'()*;<>?[\\]^`{|}~")
# Calls in the library's advice, and the command to type instead.
_CALLS = {
    "history()": "holdfast log --all",
    "threads()": "holdfast threads",
    "moves()": "holdfast reflog",
    "verify()": "holdfast verify",
    "holdfast.salvage(path, to)": "holdfast salvage FILE",
    "salvage()": "holdfast salvage FILE",
    "open it with accept_loss=True": "run holdfast verify --accept-loss",
    "backup()": "holdfast backup FILE",
    "compact()": "holdfast compact",
    "busy_timeout": "--wait",
    "make the folder, or open with make_folders=True": "make the folder first",
    "open it for writing first": "check --store and HOLDFAST_STORE",
}


def counted(number: int, noun: str) -> str:
    """A number and its noun: ``1 thread``, ``1,204 threads``, ``2 journal entries``."""
    if number == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {plural}"


def time(at: int) -> str:
    """A time in UTC, to the second."""
    found = utc(at)
    return str(at) if found is None else f"{found:%Y-%m-%d %H:%M:%SZ}"


def ago(at: int, now: int) -> str:
    """The age of a time, as a reference takes it: ``2h ago``; else the date."""
    seconds = (now - at) // 1_000_000
    for unit, length, until in _AGES:
        if 0 <= seconds < until:
            return f"{seconds // length}{unit} ago"
    return time(at)[:_DATE] if seconds >= 0 else time(at)


def size(count: float) -> str:
    """A number of bytes."""
    for unit in _UNITS[:-1]:
        if count < _STEP:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _STEP
    return f"{count:.1f} {_UNITS[-1]}"


def shell_word(text: str) -> str:
    """A text as one word of a command line."""
    if not _QUOTED.isdisjoint(text) or not text.isprintable():
        return shlex.quote(text)
    return text


def pairs(values: Mapping[str, object]) -> str:
    """A small mapping on one line."""
    return " ".join(f"{name}={excerpt(value)}" for name, value in values.items())


def for_command_line(message: str) -> str:
    """A message that names commands instead of calls of the library."""
    for call, typed in _CALLS.items():
        message = message.replace(call, typed)
    return message


def hint_of(message: str) -> str | None:
    """The part of a message that says what to do next."""
    return message.partition("; ")[2] or None
