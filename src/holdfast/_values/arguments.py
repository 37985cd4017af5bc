"""Checks of what callers pass, for arguments that are no names, limits or cursors.

Those have their checks beside the records, in `records`. Every refusal says what kind
of value came instead; one of a coroutine, that it was not awaited.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from holdfast.errors import Unstorable

T = TypeVar("T")

# More than three years; a caller that waits longer can call again.
LONGEST_WAIT = 1e8
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def kind_of(given: object) -> str:
    """The type of what came instead, and what to do about a forgotten ``await``."""
    kind = type(given).__name__
    return f"{kind}; await it first" if isinstance(given, Awaitable) else kind


def checked_mapping(given: Any, path: str) -> Mapping[Any, Any]:
    """A mapping."""
    if not _is_mapping(given):
        raise Unstorable(path, f"must be a dict, not {kind_of(given)}")
    mapping: Mapping[Any, Any] = given
    return mapping


# `isinstance` alone would narrow to types of unknown elements, which pyright refuses.


def _is_mapping(given: object) -> bool:
    return type(given) is dict or isinstance(given, Mapping)  # the first is faster


def checked_items(given: Any, path: str) -> tuple[Any, ...]:
    """The elements of a list or of another collection, in order."""
    if isinstance(given, str):
        raise Unstorable(path, f"must be a list; pass [{given!r}]")
    if not _has_elements(given):
        raise Unstorable(path, f"must be a list, not {kind_of(given)}")
    return tuple(given)


def _has_elements(given: object) -> bool:
    return isinstance(given, Iterable) and not isinstance(given, bytes | Mapping)


def checked_flag(given: object, path: str) -> bool:
    """A flag; other values that Python takes for true are mistakes."""
    if not isinstance(given, bool):
        raise Unstorable(path, f"must be True or False, not {kind_of(given)}")
    return given


def checked_flags(**given: object) -> None:
    """`checked_flag` for several, by name."""
    for name, value in given.items():
        checked_flag(value, name)


def checked_text(given: object, path: str) -> str | None:
    """A text of any content, or ``None``."""
    if given is not None and not isinstance(given, str):
        raise Unstorable(path, f"must be text, not {kind_of(given)}")
    return given


def checked_function(given: object, path: str) -> Callable[..., Any]:
    """Something that can be called."""
    if not callable(given):
        raise Unstorable(path, f"must be a function, not {kind_of(given)}")
    return given


def check_progress(given: object) -> None:
    if given is not None:
        checked_function(given, "progress")


def checked_count(given: object, path: str) -> int:
    """A number of things, 0 or more."""
    if type(given) is not int or given < 0:
        raise Unstorable(path, f"must be a number from 0 on, not {given!r}")
    return given


def checked_seconds(given: object, path: str) -> float:
    """A number of seconds to wait for; more than `LONGEST_WAIT` becomes that."""
    text = f"must be a number of seconds, not {given!r}"
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise Unstorable(path, text)
    if not (given <= 0 or given > 0):  # NaN is neither
        raise Unstorable(path, text)
    return min(given, LONGEST_WAIT)


def checked_instance(given: object, kind: type[T], path: str) -> T:
    """An instance of a class of ours."""
    if not isinstance(given, kind):
        text = f"must be {_article(kind.__name__)}, not {kind_of(given)}"
        raise Unstorable(path, text)
    return given


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIO" else f"a {name}"


def checked_time(given: object, path: str) -> int | None:
    """A time with a zone as microseconds UTC, ``None`` for ``None``."""
    if given is None:
        return None
    if not isinstance(given, datetime):
        text = f"must be a datetime with a time zone, not {kind_of(given)}"
        raise Unstorable(path, text)
    if given.tzinfo is None:
        raise Unstorable(path, "needs a time zone: give it tzinfo=UTC")
    return (given - _EPOCH) // timedelta(microseconds=1)


def checked_path(given: object, path: str) -> str:
    """The path of a file of this machine, or an address."""
    found = given
    if isinstance(given, os.PathLike):
        found = cast("os.PathLike[str]", given).__fspath__()
    if not isinstance(found, str):
        raise Unstorable(path, f"must be a path or an address, not {kind_of(found)}")
    if not found or "\0" in found:
        text = "must be a path or an address, and not empty or with NUL in it"
        raise Unstorable(path, text)
    try:
        os.fsencode(found)
    except UnicodeEncodeError:
        text = "must be valid Unicode; it has a lone surrogate"
        raise Unstorable(path, text) from None
    return found


def checked_stored_path(given: object) -> bytes:
    """The path of a file in a checkpoint."""
    try:
        return os.fsencode(cast("os.PathLike[str]", given))
    except (TypeError, UnicodeEncodeError):
        text = f"must be the path of a file in a checkpoint, not {kind_of(given)}"
        raise Unstorable("path", text) from None
