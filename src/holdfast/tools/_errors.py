"""Errors as results that a model can read and act on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holdfast._values.nearest import nearest
from holdfast._values.shortening import shortened
from holdfast.errors import HoldfastError

LONGEST_ECHO = 120
LONGEST_MESSAGE = 500


class Refusal(Exception):
    """Why a tool refused a call, and what to do instead."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code, self.message, self.hint = code, message, hint


def as_result(error: Refusal | HoldfastError) -> dict[str, Any]:
    """An error as the result of a tool."""
    hint = error.hint if isinstance(error, Refusal) else error.tool_hint
    message = _cut(error.message, LONGEST_MESSAGE)
    return {"error": {"code": error.code, "message": message, "hint": hint}}


def bad_cursor() -> Refusal:
    """The refusal of a cursor that is not from a result."""
    return Refusal(
        "invalid_arguments",
        "cursor: it is not one that this tool gave",
        "Pass the cursor of the result before, or null to begin.",
    )


def echo(value: object) -> str:
    """A given value for a message: quoted, and not too long."""
    return _cut(repr(value), LONGEST_ECHO)


def _cut(text: str, longest: int) -> str:
    return shortened(text, longest).encode("utf-8", "replace").decode()


def suggestion(wanted: str, known: Sequence[str], *, most: int = 5) -> str:
    """A sentence that lists the most similar known names, "" if none is known."""
    near = nearest(wanted, known, most=most)
    if near:
        return f"Did you mean {listed(near)}? "
    return f"Known: {listed(known[:most])}. " if known else ""


def listed(names: Iterable[object]) -> str:
    """Names as a sentence lists them."""
    return ", ".join(map(echo, names))
