"""The keys of calls in the journal, by the messages that the calls are made in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

from holdfast._messages.transcript import answers_of, calls_of
from holdfast._values.records import checked_name
from holdfast.errors import Unstorable

LONGEST_ID: Final = 400


def key_of(messages: Sequence[object], id_: str) -> str:
    """The key of a call in the journal.

    Some models use the same ids in every turn. The number of earlier answers to an id
    distinguishes such calls.
    """
    position = position_of(messages, id_)
    return key_after(count_answers(messages[:position], id_), id_)


def position_of(messages: Sequence[object], id_: str) -> int | None:
    """The position of the newest message that makes a call with an id."""
    for position in reversed(range(len(messages))):
        if any(call.id == id_ for call in calls_of(messages[position])):
            return position
    return None


def count_answers(messages: Iterable[object], id_: str) -> int:
    """The number of results for an id in messages."""
    return sum(answers_of(message).count(id_) for message in messages)


def key_after(answers: int, id_: str) -> str:
    """The key of a call that is made after some answers to its id."""
    try:
        name = checked_name(id_, longest=LONGEST_ID)
    except Unstorable:
        name = hashlib.sha256(id_.encode(errors="surrogatepass")).hexdigest()
    return f"{answers}:{name}"
