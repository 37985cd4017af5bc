"""The name of a scope, and what it puts before the names of what it holds."""

from __future__ import annotations

from holdfast._values.records import LONGEST_SCOPE, SEPARATOR, checked_name
from holdfast.errors import Unstorable, Unsupported

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


def refuse_scoped(thread: str) -> None:
    """Refuse to save to a thread of a scope from outside.

    What it would begin, a fork or an owner, would belong to no one in the scope.
    """
    if SEPARATOR in thread:
        scope, _, name = thread.partition(SEPARATOR)
        raise Unsupported(
            f"thread {thread!r} is in a scope; use store.scope({scope!r}), where its"
            f" name is {name!r}",
            code="in_scope",
        )
