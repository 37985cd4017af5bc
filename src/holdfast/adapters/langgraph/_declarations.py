"""The declarations of tools: on a function, on a tool over it, or by `once`."""

from __future__ import annotations

from typing import Final

from holdfast.effects import UNDECLARED, Declaration
from holdfast.effects import declaration_of as declared_on

# The attribute of what `once` returned.
WRAPPED: Final = "__holdfast_once__"


def declaration_of(tool: object) -> Declaration:
    """The declaration of a tool, or of the function under it."""
    wrapped: Declaration | None = getattr(tool, WRAPPED, None)
    if wrapped is not None:
        return wrapped
    for function in (
        tool,
        getattr(tool, "func", None),
        getattr(tool, "coroutine", None),
    ):
        found = declared_on(function)
        if found is not UNDECLARED:
            return found
    return UNDECLARED
