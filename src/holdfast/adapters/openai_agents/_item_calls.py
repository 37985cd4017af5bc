"""The calls that the items of a session have, by their keys in the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from holdfast._engine.effects.calls import numbered_key
from holdfast._messages.transcript import answers_of, calls_of, fields_of

# The value of a conversation's state that counts, by the id of a call, the answers that
# a compaction has replaced by a summary.
SUMMARIZED = "summarized_calls"


class ItemCalls(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of the calls in some items.

    ``made`` are all in order. ``answered`` are those with a result, here or in what a
    summary stands for. ``last`` have none, and nothing was said after them.
    """

    made: tuple[str, ...]
    answered: frozenset[str]
    last: frozenset[str]


def item_calls(
    items: Iterable[object], summarized: Mapping[str, int] | None = None
) -> ItemCalls:
    """The calls in items, with those that were summarized before them."""
    counts = Counter(summarized or {})
    answered = {numbered_key(id_, n) for id_ in counts for n in range(counts[id_])}
    made: list[str] = []
    current: dict[str, str] = {}
    last: set[str] = set()
    for item in items:
        if "role" in fields_of(item):
            last.clear()
        for id_ in answers_of(item):
            answered.add(current.pop(id_, numbered_key(id_, counts[id_])))
            counts[id_] += 1
        for call in calls_of(item):
            current[call.id] = numbered_key(call.id, counts[call.id])
            made.append(current[call.id])
            last.add(current[call.id])
    return ItemCalls(
        made=tuple(made), answered=frozenset(answered), last=frozenset(last - answered)
    )


def key_of(
    items: Sequence[object], id_: str, summarized: Mapping[str, int], *, is_made: bool
) -> str:
    """The key of the last call with an id in items, or of one that follows them."""
    made = [n for n, m in enumerate(items) if id_ in (c.id for c in calls_of(m))]
    before = items[: made[-1]] if is_made and made else items
    answers = sum(answers_of(item).count(id_) for item in before)
    return numbered_key(id_, answers + summarized.get(id_, 0))


def summarized_after(
    before: Mapping[str, int], removed: Iterable[object], added: Iterable[object]
) -> dict[str, int]:
    """The counts of summarized answers after a compaction."""
    counts = Counter(before)
    counts.update(answer for item in removed for answer in answers_of(item))
    counts.subtract(answer for item in added for answer in answers_of(item))
    return {id_: count for id_, count in sorted(counts.items()) if count > 0}
