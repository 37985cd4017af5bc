"""The calls that the items of a session have, by their keys in the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from holdfast._engine.effects.calls import count_answers, key_after, position_of
from holdfast._messages.transcript import answers_of, calls_of, fields_of
from holdfast._values.records import UNSET, Unset

# The value of a conversation's state that says which calls a summary stands for.
SUMMARY = "summarized_calls"


class Summary(msgspec.Struct, frozen=True):
    """What a compaction has replaced: the number of answers by the id of a call.

    The first ``items`` are the summary. If one of them is removed, it is none any more.
    """

    items: int = 0
    answers: Mapping[str, int] = {}

    @classmethod
    def of(cls, value: Any) -> Summary:
        """A summary as it is stored, or none."""
        return cls(value["items"], value["answers"]) if value else cls()

    @property
    def value(self) -> dict[str, object] | Unset:
        """As it is stored."""
        if not self.answers:
            return UNSET
        return {"items": self.items, "answers": self.answers}

    def within(self, count: int) -> Summary:
        """What is left of it if only ``count`` items stay."""
        return self if count >= self.items else Summary()


class ItemCalls(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of the calls in some items.

    ``made`` are all in order. ``answered`` are those with a result, here or in what a
    summary stands for. ``last`` have none, and nothing was said after them.
    """

    made: tuple[str, ...]
    answered: frozenset[str]
    last: frozenset[str]


def item_calls(items: Iterable[object], summary: Summary) -> ItemCalls:
    """The calls in items, with those that were summarized before them."""
    counts = Counter(summary.answers)
    answered = {key_after(n, id_) for id_ in counts for n in range(counts[id_])}
    made: list[str] = []
    current: dict[str, str] = {}
    last: set[str] = set()
    for item in items:
        if "role" in fields_of(item):
            last.clear()
        for id_ in answers_of(item):
            answered.add(current.pop(id_, key_after(counts[id_], id_)))
            counts[id_] += 1
        for call in calls_of(item):
            current[call.id] = key_after(counts[call.id], call.id)
            made.append(current[call.id])
            last.add(current[call.id])
    return ItemCalls(
        made=tuple(made), answered=frozenset(answered), last=frozenset(last - answered)
    )


def key_of(
    items: Sequence[object], id_: str, summary: Summary, *, is_made: bool
) -> str:
    """The key of the last call with an id in items, or of one that follows them."""
    end = position_of(items, id_) if is_made else None
    return key_after(count_answers(items[:end], id_) + summary.answers.get(id_, 0), id_)


def summary_after(
    before: Summary, removed: Iterable[object], added: Sequence[object], stay: int = 0
) -> Summary:
    """What a summary stands for after it replaced items behind those that ``stay``."""
    counts = Counter(before.answers)
    counts.update(answer for item in removed for answer in answers_of(item))
    counts.subtract(answer for item in added for answer in answers_of(item))
    answers = {id_: count for id_, count in sorted(counts.items()) if count > 0}
    size = stay + len(added)
    return Summary(size, answers) if size else Summary()
