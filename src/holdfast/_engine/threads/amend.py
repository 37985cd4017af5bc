"""Changing some values and lists of a state, whatever else it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from holdfast._engine.threads.drafts import AmendDraft, Amendment, ListsDraft, path
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
    if isinstance(remove, str):
        raise Unstorable("remove", f"must be a list of names; pass [{remove!r}]")
    changed: dict[str, object] = {**(values or {}), **dict.fromkeys(remove, UNSET)}
    names = [*(lists or ()), *(values or ()), *remove]
    for name in names:
        if names.count(name) > 1:
            raise Unstorable(path(name), "is changed twice; name it once")
    change = EncodedAmendment(
        {}, ListsDraft(lists or {}), encoded=Amendment(changed).texts()
    )
    return AmendDraft((), lambda _: change)
