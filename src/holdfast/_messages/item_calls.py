"""The calls in the items of a session, by their keys in the journal.

The items of a session can be popped, cleared and summarized, which is no rewind. The
first such change of items with calls adds a `Summary` to the state of the conversation.
From then on the items decide about all its calls, also those of a recorder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast._messages.call_keys import count_answers, key_after, position_of
from holdfast._messages.loose import fields_of
from holdfast._messages.transcript import answers_of, calls_of
from holdfast._values.typed import prepare

# The values of a conversation's state that hold a summary and a paused run.
SUMMARY: Final = "summarized_calls"
PAUSED_RUN: Final = "paused_run"


class Summary(msgspec.Struct, frozen=True):
    """The number of answers by the id of a call, for items that a compaction replaced.

    The first ``items`` are the summary. If one of them is removed, only an earlier
    summary ``below`` it stays, or an empty one. A conversation whose calls were taken
    back has an empty one too.
    """

    items: int = 0
    answers: Mapping[str, int] = {}
    below: Summary | None = None

    @classmethod
    def of(cls, value: object) -> Summary | None:
        """A summary as it is stored, ``None`` if the value is not a summary."""
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError:
            return None

    @property
    def value(self) -> dict[str, Any]:
        """The summary as it is stored."""
        below = {"below": self.below.value} if self.below else {}
        return {"items": self.items, "answers": dict(self.answers), **below}

    def within(self, count: int) -> Summary:
        """The part of it that stays if only ``count`` items stay."""
        if count >= self.items:
            return self
        return self.below.within(count) if self.below else Summary()


class ItemCalls(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of the calls in some items.

    ``made`` are all in order. ``answered`` are those with a result in the items or in
    the summary. Of the others, ``last`` are those without a later message, and a paused
    run waits for those in ``awaited``.
    """

    made: tuple[str, ...]
    answered: frozenset[str]
    last: frozenset[str]
    awaited: frozenset[str]


def item_calls(
    items: Iterable[object], summary: Summary | None, waiting: Iterable[object] = ()
) -> ItemCalls:
    """The calls in items, after the summarized ones.

    ``waiting`` are the ids of calls that will get a result.
    """
    counts = Counter(summary.answers if summary else ())
    answered = {key_after(n, id_) for id_ in counts for n in range(counts[id_])}
    made: list[str] = []
    current: dict[object, str] = {}
    last: set[str] = set()
    for item in items:
        answers = answers_of(item)
        if "role" in fields_of(item) and not answers:
            last.clear()
        for id_ in answers:
            answered.add(current.pop(id_, key_after(counts[id_], id_)))
            counts[id_] += 1
        for call in calls_of(item):
            current[call.id] = key_after(counts[call.id], call.id)
            made.append(current[call.id])
            last.add(current[call.id])
    awaited = {current[id_] for id_ in waiting if id_ in current}
    return ItemCalls(
        made=tuple(made),
        answered=frozenset(answered),
        last=frozenset(last - answered),
        awaited=frozenset(awaited - answered),
    )


def key_of(
    items: Sequence[object], id_: str, summary: Summary | None, *, is_made: bool
) -> str:
    """The key of the last call with an id in items, or of one that follows them."""
    end = position_of(items, id_) if is_made else None
    before = summary.answers.get(id_, 0) if summary else 0
    return key_after(count_answers(items[:end], id_) + before, id_)


# --- changes --------------------------------------------------------------------------


def summary_without(
    before: Summary | None, removed: Iterable[object], stay: int
) -> Summary | None:
    """The summary after items were taken back; the first ``stay`` remain."""
    if before is not None:
        return before.within(stay)
    return Summary() if _have_calls(removed) else None


def summary_after(
    before: Summary | None,
    removed: Sequence[object],
    added: Sequence[object],
    stay: int = 0,
) -> Summary | None:
    """The summary after a compaction replaced items; the first ``stay`` remain."""
    if before is None and not _have_calls(removed):
        return None
    counts = Counter(before.answers if before else ())
    counts.update(answer for item in removed for answer in answers_of(item))
    counts.subtract(answer for item in added for answer in answers_of(item))
    answers = {id_: count for id_, count in sorted(counts.items()) if count > 0}
    size, below = stay + len(added), before.within(stay) if before else None
    below = below if below and below.answers else None
    return Summary(size, answers, below) if size else Summary()


def _have_calls(items: Iterable[object]) -> bool:
    return any(calls_of(item) or answers_of(item) for item in items)


prepare(Summary)
