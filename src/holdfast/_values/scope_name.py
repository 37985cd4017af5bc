"""The name of a scope, and what it puts before the names of what it holds."""

from __future__ import annotations

from holdfast._values.records import LONGEST_SCOPE, SEPARATOR, checked_name
from holdfast.errors import Unstorable

# Besides letters and digits; none of them is written otherwise in an error's text.
ALLOWED = frozenset(" ._-@:+/#")


def scope_prefix(name: object) -> str:
    """What stands before the names of a scope, if its own name is valid."""
    scope = checked_name(name, "scope", LONGEST_SCOPE - len(SEPARATOR))
    if not all(letter.isalnum() or letter in ALLOWED for letter in scope):
        allowed = " ".join(sorted(ALLOWED - {" "}))
        text = f"may have letters, digits, spaces and {allowed}, not {scope!r}"
        raise Unstorable("scope", text)
    return scope + SEPARATOR
