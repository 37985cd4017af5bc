"""The fields of a conversation beside its messages, as values of its state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec

from holdfast._messages.fields import checked
from holdfast._values.arguments import checked_flag
from holdfast._values.records import UNSET
from holdfast.conversations import Conversation
from holdfast.errors import Unstorable

ABOUT = frozenset(
    {"title", "summary", "context", "tags", "archived", "budget", "metadata"}
)
MAPPINGS = ("context", "metadata")


class Items(msgspec.Struct, frozen=True):
    """Items to set beside the others of a mapping; ``None`` removes one."""

    items: Mapping[str, object]

    def after(self, before: object) -> object:
        """The mapping with these items; `UNSET` if none is left."""
        old = cast("dict[str, object]", before) if type(before) is dict else {}
        removed = {name for name, value in self.items.items() if value is None}
        both = {**old, **self.items}
        return {n: v for n, v in both.items() if n not in removed} or UNSET


def merged_names(values: Mapping[str, object]) -> tuple[str, ...]:
    """The names of the values that depend on those before."""
    return tuple(name for name, new in values.items() if isinstance(new, Items))


def applied(
    values: Mapping[str, object], before: Mapping[str, object]
) -> dict[str, object]:
    """The given values on top of those before."""
    return {
        name: new.after(before.get(name)) if isinstance(new, Items) else new
        for name, new in values.items()
    }


def as_values(about: Mapping[str, object], *, merge: bool = False) -> dict[str, object]:
    """The fields of a conversation beside its messages, as values of its state.

    With ``merge``, the mappings among them become `Items`.
    """
    checked_flag(merge, "merge")
    unknown = about.keys() - ABOUT
    if unknown:
        raise Unstorable(
            "conversation", f"has no {min(unknown)!r}; put it into metadata"
        )
    # Defaults are not stored: ``None``, `False` and empty values.
    values: dict[str, object] = {
        name: checked(Conversation, name, value) or UNSET
        for name, value in about.items()
    }
    if merge:
        values |= {n: _items(n, about[n]) for n in MAPPINGS if n in about}
    return values


def _items(name: str, value: object) -> Items:
    if not isinstance(value, Mapping):
        raise Unstorable(name, f"must be a mapping to be merged, not {value!r}")
    return Items(dict(cast("Mapping[str, object]", value)))
