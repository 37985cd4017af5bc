"""The counts of a transcript whose end is taken away, told without reading it all."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast._messages.transcript import Tally, answers_of, calls_of, role_of


def without_last(tally: Tally, message: object, earlier: Iterable[object]) -> Tally:
    """The counts in front of the last message.

    ``earlier`` are the messages in front of it, newest first, of which only as many
    are looked at as it takes.
    """
    awaiting = _is_awaiting(earlier)
    return Tally(
        messages=tally.messages - 1,
        exchanges=tally.exchanges - (role_of(message) == "assistant" and awaiting),
        awaiting=awaiting,
        open=_open_before(tally, message, earlier),
    )


def _is_awaiting(earlier: Iterable[object]) -> bool:
    """Whether the last one who said something was the user."""
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
    """How many calls were open behind the newest open one with an id.

    ``answered`` are ids that were answered after all the earlier messages. ``None`` if
    no call with this id was open.
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
