"""The names of scopes, and the prefix that a scope adds to the names inside of it."""

from __future__ import annotations

from holdfast._values.records import LONGEST_SCOPE, SEPARATOR, checked_name
from holdfast.errors import Unstorable, Unsupported

# Allowed besides letters and digits; the text of an error shows all of them unescaped.
ALLOWED = frozenset(" ._-@:+/#")


def scope_prefix(name: object) -> str:
    """The prefix of the names in a scope, if its own name is valid."""
    scope = checked_name(name, "scope", LONGEST_SCOPE - len(SEPARATOR))
    if not all(letter.isalnum() or letter in ALLOWED for letter in scope):
        allowed = " ".join(sorted(ALLOWED - {" "}))
        text = f"may have letters, digits, spaces and {allowed}, not {scope!r}"
        raise Unstorable("scope", text)
    return scope + SEPARATOR


def refuse_scoped(thread: str) -> None:
    """Refuse a save from outside of a scope to a thread inside of it.

    A fork or an owner that such a save sets would not belong to the scope.
    """
    if SEPARATOR in thread:
        scope, _, name = thread.partition(SEPARATOR)
        raise Unsupported(
            f"thread {thread!r} is in a scope; use store.scope({scope!r}), where its"
            f" name is {name!r}",
            code="in_scope",
        )
