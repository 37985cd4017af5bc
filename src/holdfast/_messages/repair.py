"""Repairing a transcript that was cut at any point, so that providers accept it.

They refuse a transcript with a call whose result does not follow right after its
message, a result without a call, or two results of one call. Pure; the input is never
changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from typing import Literal, TypeAlias, get_args

import msgspec

from holdfast._messages.dialects import (
    Fields,
    can_answer,
    interruption,
    is_block,
    is_item,
    new_host,
    proposal,
    result_of,
    without,
)
from holdfast._messages.loose import fields_of, kind_of, parts_of
from holdfast._messages.transcript import TranscriptCall, answers_of, calls_of, role_of
from holdfast.errors import Unstorable

How: TypeAlias = Literal["interrupted", "drop", "propose"]
Kind: TypeAlias = Literal[
    "interrupted", "recorded", "dropped", "proposed", "moved", "orphan", "duplicate"
]


class Repair(msgspec.Struct, frozen=True):
    """One thing that was wrong with a transcript, and its repair.

    - ``interrupted``: a call without a result got one that says it was interrupted.
    - ``recorded``: a call without a result got the result from the journal.
    - ``dropped``: a call without a result was removed from its message.
    - ``proposed``: likewise; ``message`` makes the call again, to be appended together
      with its result.
    - ``moved``: a result that did not follow right after its call.
    - ``orphan`` and ``duplicate``: a result without a call, a second result of a call,
      or a call made twice in a turn; ``message`` is what was left out.

    ``position`` is the index, before the repair, of the message with the call, or for
    the last three kinds of the message with the result.
    """

    kind: Kind
    call_id: str
    name: str
    arguments: object
    position: int
    message: object = None


class Repaired(msgspec.Struct, frozen=True):
    """A valid transcript, and the repairs that were made."""

    messages: list[object]
    repairs: tuple[Repair, ...] = ()


def repaired(
    messages: Sequence[object],
    how: How = "interrupted",
    known: Mapping[str, object] | None = None,
    keep: Collection[str] = (),
) -> Repaired:
    """The transcript with one result for every call, right after its message.

    ``how`` decides about a call without a result: ``"interrupted"`` adds a result that
    says so, ``"drop"`` removes the call, and its message if nothing else is in it,
    ``"propose"`` removes the call and returns it in the repairs. A call for which no
    result can be created (OpenAI's computer and shell) is dropped. Results are moved to
    their call; results without a call and second results are left out. A valid
    transcript is returned unchanged. ``known`` are results by the id of the call, for
    calls that have none. Calls to ``keep`` stay as they are, without a result.
    """
    if how not in get_args(How):
        raise Unstorable("repair", f"is one of {get_args(How)}, not {how!r}")
    return _Repairing(messages, how, known or {}, keep).run()


def last_turn(messages: Sequence[object]) -> int:
    """The position of the last turn of the model, if only results follow it."""
    start = len(messages)
    while start and answers_of(messages[start - 1]):
        start -= 1
    if not (start and is_item(messages[start - 1])):
        return start - 1
    while start and is_item(messages[start - 1]):
        start -= 1
    return start


# --- calls and their results ----------------------------------------------------------


class _Result(msgspec.Struct, eq=False):
    """A result and its position: a whole message, or the block ``index`` of one."""

    id: str
    position: int
    index: int | None
    content: object
    call: TranscriptCall | None = None


class _Slot(msgspec.Struct, eq=False):
    """A call, and the result that was found for it."""

    call: TranscriptCall
    result: _Result | None = None

    @property
    def is_dangling(self) -> bool:
        return self.result is None and not self.call.answered


def _results_in(message: object, position: int) -> list[_Result]:
    answers = answers_of(message)
    if not answers:
        return []
    if role_of(message) == "tool" and fields_of(message).get("role") != "user":
        return [_Result(answers[0], position, None, message)]
    blocks = enumerate(parts_of(fields_of(message).get("content")))
    return [
        _Result(id_, position, index, block)
        for index, block in blocks
        for id_ in answers_of({"role": "user", "content": [block]})
    ]


class _Matching:
    """The assignment of results to calls."""

    def __init__(self, messages: Sequence[object], passed: set[int]) -> None:
        self.slots: dict[int, list[_Slot]] = {}
        self.results: dict[int, list[_Result]] = {}
        self.surplus: list[tuple[_Result, Kind]] = []
        self._called: dict[str, list[_Slot]] = defaultdict(list)
        self._early: list[_Result] = []
        for position, message in enumerate(messages):
            self.results[position] = _results_in(message, position)
            for result in self.results[position]:
                self._match(result)
            calls = [] if position in passed else calls_of(message, position)
            self.slots[position] = list(map(_Slot, calls))
            for slot in self.slots[position]:
                self._called[slot.call.id].append(slot)
        for result in self._early:
            self._match(result, otherwise="orphan")

    def _match(self, result: _Result, otherwise: Kind = "duplicate") -> None:
        """Assign a result to the newest call with its id that has none.

        Ids are not unique: some models use the same ids in every turn.
        """
        called = self._called[result.id]
        free = [slot for slot in called if slot.result is None]
        free.sort(key=lambda slot: not slot.call.answered)
        if free:
            free[-1].result, result.call = result, free[-1].call
        elif called or otherwise == "orphan":
            self.surplus.append((result, otherwise))
        else:
            # Its call may come later in the transcript.
            self._early.append(result)


# --- the repair -----------------------------------------------------------------------


class _Repairing:
    """The repair of one transcript.

    A run is a message, or the items of OpenAI Responses that form one turn of the
    model; the results of its calls follow right after it.
    """

    def __init__(
        self,
        messages: Sequence[object],
        how: How,
        known: Mapping[str, object],
        keep: Collection[str],
    ) -> None:
        self.messages, self.how, self.known = list(messages), how, known
        self.keep = keep
        self.runs = list(self._runs())
        self.repeated = {n for run in self.runs for n in self._repeated(run)}
        self.matching = _Matching(self.messages, self.repeated)
        self.results = self.matching.results
        self.dropped = self._calls_to_drop()
        self.repairs: list[Repair] = []
        # Messages that are written after a run instead of at their own position.
        self.hosts: set[int] = set()
        kept = (not self._is_only_results(n) for n in range(len(self.messages)))
        self.kept_before = [0, *accumulate(kept)]

    def run(self) -> Repaired:
        out: list[object] = []
        for run in self.runs:
            lone = self._lone_reasoning(run)
            for position in run:
                if position not in self.hosts and position not in lone:
                    out += self._remaining(position)
            out += self._answers(run)
        self._report_surplus()
        if not self.repairs:
            return Repaired(self.messages)
        return Repaired(out, tuple(sorted(self.repairs, key=lambda r: r.position)))

    def _calls_to_drop(self) -> dict[int, set[str]]:
        return {
            position: {slot.call.id for slot in slots if self._is_to_drop(slot)}
            for position, slots in self.matching.slots.items()
        }

    def _is_to_drop(self, slot: _Slot) -> bool:
        if not slot.is_dangling or slot.call.id in self.keep:
            return False
        is_answered = self.how == "interrupted" or slot.call.id in self.known
        return not is_answered or not can_answer(self.messages[slot.call.position])

    def _runs(self) -> Iterator[range]:
        start = 0
        for position, message in enumerate(self.messages):
            following = self.messages[position + 1 : position + 2]
            if not (is_item(message) and all(map(is_item, following)) and following):
                yield range(start, position + 1)
                start = position + 1

    def _repeated(self, run: range) -> Iterator[int]:
        """The items of a run that repeat a call of an earlier item."""
        made: set[str] = set()
        for position in run if len(run) > 1 else ():
            ids = {call.id for call in calls_of(self.messages[position])}
            if ids & made:
                yield position
            made |= ids

    def _is_only_results(self, position: int) -> bool:
        results = self.results[position]
        return bool(results) and not self._rest(position)

    def _rest(self, position: int) -> list[object]:
        """The blocks of a message that are not results."""
        results = self.results[position]
        if results[0].index is None:
            return []
        indexes = {result.index for result in results}
        parts = parts_of(fields_of(self.messages[position]).get("content"))
        return [part for index, part in enumerate(parts) if index not in indexes]

    def _remaining(self, position: int) -> list[object]:
        """The rest of a message at its position: none or one message."""
        message = self.messages[position]
        if self.results[position]:
            rest = self._rest(position)
            return [{**fields_of(message), "content": rest}] if rest else []
        if position in self.repeated:
            [call] = calls_of(message)
            self._report("duplicate", call, position, message)
            return []
        ids = self.dropped[position]
        if ids:
            self._report_dropped(position)
            message = without(fields_of(message), ids)
        return [] if message is None else [message]

    def _lone_reasoning(self, run: range) -> set[int]:
        """Reasoning items followed only by dropped calls: OpenAI refuses them alone."""
        groups = [list(group) for _, group in groupby(run, self._is_reasoning)]
        return {
            position
            for reasoning, following in pairwise(groups)
            if all(self.dropped[n] or n in self.repeated for n in following)
            for position in reasoning
        }

    def _is_reasoning(self, position: int) -> bool:
        return kind_of(fields_of(self.messages[position])) == "reasoning"

    # --- results ----------------------------------------------------------------------

    def _answers(self, run: range) -> list[object]:
        """The messages with the results of a run's calls, blocks of Anthropic first."""
        slots = [slot for position in run for slot in self.matching.slots[position]]
        found = [slot.result for slot in slots if slot.result]
        found.sort(key=lambda result: (result.position, result.index or 0))
        blocks = [result for result in found if result.index is not None]
        whole = [result for result in found if result.index is None]
        made = [self._created(slot.call) for slot in slots if self._is_unanswered(slot)]
        made_blocks = [part for part in made if is_block(part)]
        self._report_moved(run, blocks, whole)
        out: list[object] = []
        if blocks or made_blocks:
            parts = [*(result.content for result in blocks), *made_blocks]
            out.append(self._host(run, blocks, parts, is_last=not whole))
        out += [result.content for result in whole]
        return out + [part for part in made if not is_block(part)]

    def _is_unanswered(self, slot: _Slot) -> bool:
        id_ = slot.call.id
        is_kept = id_ in self.keep or id_ in self.dropped[slot.call.position]
        return slot.is_dangling and not is_kept

    def _created(self, call: TranscriptCall) -> Fields:
        fields = fields_of(self.messages[call.position])
        if call.id in self.known:
            self._report("recorded", call, call.position)
            return result_of(fields, call, self.known[call.id], is_error=False)
        self._report("interrupted", call, call.position)
        return interruption(fields, call)

    def _host(
        self, run: range, blocks: list[_Result], parts: list[object], *, is_last: bool
    ) -> object:
        """The user message with all block results of a run, before its other blocks.

        It is the first message with one of the results, unless that message has other
        blocks and must stay at another position.
        """
        position = blocks[0].position if blocks else None
        if position is None or position in self.hosts:
            return new_host(fields_of(self.messages[run[-1]]), parts)
        rest = self._rest(position)
        if rest and not (is_last and self._is_next(run, position)):
            return new_host(fields_of(self.messages[run[-1]]), parts)
        self.hosts.add(position)
        return {**fields_of(self.messages[position]), "content": parts + rest}

    def _is_next(self, run: range, position: int) -> bool:
        """True if there are only results between a run and a message."""
        before = self.kept_before
        return position in range(run.stop, len(self.messages)) and (
            before[position] == before[run.stop]
        )

    # --- the report -------------------------------------------------------------------

    def _report_moved(
        self, run: range, blocks: list[_Result], whole: list[_Result]
    ) -> None:
        for result in [*blocks, *whole]:
            in_place = self._is_next(run, result.position)
            if result.index is not None:
                in_place &= self._is_first(result)
                in_place &= result.position == blocks[0].position
                in_place &= not whole or result.position < whole[0].position
            if not in_place:
                assert result.call is not None
                self._report("moved", result.call, result.position)

    def _is_first(self, result: _Result) -> bool:
        """True if there are only results before a block."""
        return self.results[result.position].index(result) == result.index

    def _report_dropped(self, position: int) -> None:
        message = fields_of(self.messages[position])
        for slot in self.matching.slots[position]:
            if slot.call.id not in self.dropped[position]:
                continue
            if self.how == "propose":
                again = proposal(message, slot.call)
                self._report("proposed", slot.call, position, again)
            else:
                self._report("dropped", slot.call, position)

    def _report_surplus(self) -> None:
        for result, kind in self.matching.surplus:
            call = TranscriptCall(result.id, "", None)
            self._report(kind, call, result.position, result.content)

    def _report(
        self, kind: Kind, call: TranscriptCall, position: int, message: object = None
    ) -> None:
        repair = Repair(kind, call.id, call.name, call.arguments, position, message)
        self.repairs.append(repair)
