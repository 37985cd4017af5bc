"""The counts of a transcript: with more messages, and without its last one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from holdfast._messages.loose import fields_of, parts_of
from holdfast._messages.transcript import answers_of, calls_of, role_of


class Tally(msgspec.Struct, frozen=True):
    """Counts of a transcript, updated by each new message without reading the others.

    An exchange is a user message with a reply before the next user message.
    ``awaiting`` means that a user message has no reply yet; ``open`` are the ids of
    calls without a result. ``unanswered`` are user messages that another one followed
    before a reply.
    """

    messages: int = 0
    exchanges: int = 0
    awaiting: bool = False
    open: tuple[str, ...] = ()
    unanswered: int = 0

    @property
    def user_messages(self) -> int:
        return self.exchanges + self.awaiting + self.unanswered

    def after(self, messages: Iterable[object]) -> Tally:
        """The counts after more messages."""
        count, exchanges, awaiting = self.messages, self.exchanges, self.awaiting
        pending, unanswered = list(self.open), self.unanswered
        for message in messages:
            count += 1
            role = role_of(message)
            unanswered += awaiting and role == "user"
            if role == "assistant":
                exchanges += awaiting
            awaiting = role == "user" or (awaiting and role != "assistant")
            for answer in answers_of(message):
                _answer(pending, answer)
            pending += [call.id for call in calls_of(message) if not call.answered]
        return Tally(count, exchanges, awaiting, tuple(pending), unanswered)


def _answer(pending: list[str], answer: str) -> None:
    """Remove the newest call with an id; some models use the same ids in every turn."""
    for index in reversed(range(len(pending))):
        if pending[index] == answer:
            del pending[index]
            return


def without_last(tally: Tally, message: object, earlier: Iterable[object]) -> Tally:
    """The counts before the last message.

    ``earlier`` are the messages before it, newest first; only as many are read as are
    needed.
    """
    awaiting = _is_awaiting(earlier)
    return Tally(
        messages=tally.messages - 1,
        exchanges=tally.exchanges - (role_of(message) == "assistant" and awaiting),
        awaiting=awaiting,
        open=_open_before(tally, message, earlier),
        unanswered=tally.unanswered - (role_of(message) == "user" and awaiting),
    )


def _is_awaiting(earlier: Iterable[object]) -> bool:
    """True if the last message of the user or the assistant is the user's."""
    roles = map(role_of, earlier)
    return next((role == "user" for role in roles if role in _SPEAKERS), False)


_SPEAKERS = frozenset({"user", "assistant"})


def _open_before(
    tally: Tally, message: object, earlier: Iterable[object]
) -> tuple[str, ...]:
    made = [call for call in calls_of(message) if not call.answered]
    before = list(tally.open[: len(tally.open) - len(made)])
    answers = answers_of(message)
    for number in reversed(range(len(answers))):
        place = _place_of(answers[number], answers[:number], earlier)
        if place is not None:
            before.insert(len(before) - place, answers[number])
    return tuple(before)


def _place_of(id_: str, answered: list[str], earlier: Iterable[object]) -> int | None:
    """The number of open calls after the newest open call with an id.

    ``answered`` are ids that were answered after the earlier messages. ``None`` if no
    call with this id was open.
    """
    taken = list(answered)
    behind = 0
    for message in earlier:
        for call in reversed(calls_of(message)):
            if call.answered:
                continue
            if call.id in taken:
                taken.remove(call.id)
            elif call.id == id_:
                return behind
            else:
                behind += 1
        taken += answers_of(message)
    return None


def counts_of(counted: Tally) -> dict[str, Any]:
    """A tally as it is stored in a state."""
    kept: dict[str, Any] = {
        "messages": counted.messages,
        "exchanges": counted.exchanges,
    }
    if counted.awaiting:
        kept["awaiting"] = True
    if counted.open:
        kept["open"] = list(counted.open)
    if counted.unanswered:
        kept["unanswered"] = counted.unanswered
    return kept


def tally_of(counts: Any) -> Tally:
    """The inverse of `counts_of`; a value that is no count becomes 0."""
    kept: Mapping[str, Any] = fields_of(counts)

    def number(name: str) -> int:
        found = kept.get(name)
        return found if type(found) is int else 0

    return Tally(
        number("messages"),
        number("exchanges"),
        kept.get("awaiting") is True,
        tuple(map(str, parts_of(kept.get("open")))),
        number("unanswered"),
    )
