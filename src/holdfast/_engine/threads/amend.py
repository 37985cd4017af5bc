"""Changing some values and lists of a state, whatever else it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from holdfast._engine.threads.drafts import (
    AmendDraft,
    Amendment,
    ListsDraft,
    checked_key,
    path,
)
from holdfast._values.arguments import checked_items, checked_mapping
from holdfast._values.records import UNSET
from holdfast.errors import Unstorable


class EncodedAmendment(Amendment, frozen=True):
    """An amendment whose values were encoded when it was made."""

    encoded: dict[str, bytes | None] = msgspec.field(
        default_factory=dict[str, bytes | None]
    )

    def texts(self) -> dict[str, bytes | None]:
        return self.encoded


def amended(
    lists: Mapping[str, Sequence[object]] | None,
    values: Mapping[str, object] | None,
    remove: Sequence[str],
) -> AmendDraft:
    """A draft that appends to lists, sets values and removes others."""
    appended = checked_mapping({} if lists is None else lists, "lists")
    values = checked_mapping({} if values is None else values, "values")
    names = [checked_key(n) for n in (*appended, *values)]
    names += [checked_key(n) for n in checked_items(remove, "remove")]
    for name in names:
        if names.count(name) > 1:
            raise Unstorable(path(name), "is changed twice; name it once")
    removed = names[len(appended) + len(values) :]
    changed: dict[str, object] = {**values, **dict.fromkeys(removed, UNSET)}
    change = EncodedAmendment(
        {}, ListsDraft(appended), encoded=Amendment(changed).texts()
    )
    return AmendDraft((), lambda _: change)
