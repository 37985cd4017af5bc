"""What tools say about their effects: a function, a tool over it, or one of `once`."""

from __future__ import annotations

from typing import Final

from holdfast.effects import UNDECLARED, Declaration
from holdfast.effects import declaration_of as declared_on

# The attribute of what `once` returned.
WRAPPED: Final = "__holdfast_once__"


def declaration_of(tool: object) -> Declaration:
    """What a tool, or the function under it, says about itself."""
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
