"""Reads a folder of smooth checkpoints, one JSON file each, in a folder per agent.

    conversation -> conversation of the agent    checkpoint -> checkpoint, oldest first
    messages -> the state's messages, as they are
    max_context_tokens -> budget                 iteration -> run.iteration
    metadata -> metadata                         created_at -> saved_at

Checkpoints are ordered by ``created_at``, with nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from holdfast.importers._fields import Fields, Moment
from holdfast.importers._files import (
    SourceFile,
    digest,
    read_head,
    read_json,
    shown,
    walk,
)
from holdfast.importers._reader import Line, Reading, Save, later
from holdfast.importers._sqlite import is_database

# An agent's id may contain slashes; each one is a further folder.
DEPTH = 8
KEYS = (b'"agent_id"', b'"conversation"')
# The path may be a home folder by mistake: do not search all of it.
MOST_LOOKED_AT = 10_000


class SmoothSave(msgspec.Struct, frozen=True):
    """A checkpoint and the conversation it belongs to."""

    line: Line
    save: Save
    order: tuple[int, int]


def recognises(path: str) -> bool:
    """True if one of the files below a folder has the keys of a smooth checkpoint."""
    files = islice(walk(path, DEPTH, Reading()), MOST_LOOKED_AT)
    return any(map(_looks_right, files))


def read(path: str, without: frozenset[str] = frozenset()) -> Reading:
    """All checkpoints below a folder."""
    reading = Reading()
    found: list[SmoothSave] = []
    for file in _candidates(path, reading, without):
        with reading.attempt(shown(file.path)):
            again = partial(_found, file.path)
            found.append(lightened(again(), again))
    put_in_order(reading, found, "by their iteration and the names of their files")
    return reading


def _candidates(
    path: str, reading: Reading, without: frozenset[str]
) -> Iterator[SourceFile]:
    for file in walk(path, DEPTH, reading, without):
        if file.name.endswith(".json"):
            yield file
        elif is_database(file.path):
            reading.ignore(shown(file.path), "is a database; import it by itself")
        else:
            reading.ignore(shown(file.path), "is not a JSON file")


def _looks_right(file: SourceFile) -> bool:
    head = read_head(file.path) if file.name.endswith(".json") else b""
    return all(key in head for key in KEYS)


def _found(path: str) -> SmoothSave:
    record = read_json(path)
    return taken_apart(record, shown(path), Fields(record).moment("created_at"))


def taken_apart(record: Any, path: str, created_at: Moment) -> SmoothSave:
    """The save for a checkpoint of smooth."""
    fields = Fields(record)
    line, state = _conversation(fields)
    iteration = fields.number("iteration")
    id_, metadata = fields.text("id"), fields.mapping("metadata")
    fields.rest.pop("created_at", None)
    exact = created_at.remainder
    save = Save(
        id=id_,
        at=created_at.at,
        path=path,
        digest=digest(record),
        state=lambda: {**state, "run": {"iteration": iteration}},
        metadata=metadata,
        origin={**({"created_at": exact} if exact else {}), **fields.extra()},
        messages=len(state["messages"]),
    )
    return SmoothSave(line, save, (created_at.nanoseconds, iteration))


def _conversation(fields: Fields) -> tuple[Line, dict[str, Any]]:
    agent = fields.text("agent_id")
    conversation = Fields(fields.mapping("conversation"), "conversation")
    line = Line(kind="conversation", id=conversation.text("id"), agent=agent)
    state: dict[str, Any] = {"messages": conversation.objects("messages")}
    budget = conversation.maybe("max_context_tokens", int)
    if budget is not None:
        state["budget"] = budget
    if conversation.rest:
        state["smooth"] = conversation.rest
    return line, state


def lightened(found: SmoothSave, again: Callable[[], SmoothSave]) -> SmoothSave:
    """The same without its state in memory."""
    save = later(found.save, lambda: again().save)
    return msgspec.structs.replace(found, save=save)


def put_in_order(reading: Reading, found: list[SmoothSave], otherwise: str) -> None:
    """Add checkpoints oldest first; ``otherwise`` says how equal times are ordered."""
    # Sorting is stable: equal ones stay in the order in which they were found.
    found.sort(key=lambda checkpoint: checkpoint.order)
    last: dict[Line, int] = {}
    for checkpoint in found:
        line, time = checkpoint.line, checkpoint.order[0]
        if last.get(line) == time:
            reading.infer(
                f"checkpoints of conversation {line.id!r} have the same time; they were"
                f" put in order {otherwise}"
            )
        last[line] = time
        reading.put(line, checkpoint.save)
        reading.count(str(line.agent))
