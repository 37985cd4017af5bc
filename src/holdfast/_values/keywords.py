"""Keyword options that are declared once, as a TypedDict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Declared(Protocol):
    """A TypedDict class without required keys."""

    __optional_keys__: frozenset[str]


def refuse_unknown(what: str, given: Mapping[str, object], declared: Declared) -> None:
    """Raise `TypeError`, as Python does, for a keyword that was not declared."""
    known = declared.__optional_keys__
    if not given.keys() <= known:
        unknown = min(given.keys() - known)
        names = ", ".join(sorted(known))
        raise TypeError(f"{what} has no option {unknown!r}; choose from {names}")
