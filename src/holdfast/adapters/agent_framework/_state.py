"""A checkpoint of a workflow as the values of a state, and back.

The states of the workflow and of its executors become values of their own, so that a
checkpoint stores only those that have changed, and a diff names them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, cast

from agent_framework import WorkflowCheckpoint, WorkflowMessage

Values = dict[str, Any]
Messages = dict[str, list[WorkflowMessage]]

MESSAGES, SENDERS, STATE, EXECUTORS = "messages", "senders", "state", "executors"
# The framework keeps the states of executors under this key of the workflow's state.
_EXECUTOR_STATE = "_executor_state"
# Set only if the framework's previous checkpoint is not the parent in the store.
PREVIOUS = "previous_checkpoint_id"
_APART = frozenset({"messages", "state", "checkpoint_id", PREVIOUS})


def values_of(checkpoint: WorkflowCheckpoint) -> Values:
    """The values of the state; id and lineage are those of the stored checkpoint."""
    fields = {field.name for field in dataclasses.fields(checkpoint)}
    return {
        **_spread_messages(checkpoint.messages),
        **{name: getattr(checkpoint, name) for name in sorted(fields - _APART)},
        **dict(_spread_state(checkpoint.state)),
    }


def checkpoint_of(values: Values, id_: str, parent: str | None) -> WorkflowCheckpoint:
    """The checkpoint of a state."""
    names = {field.name for field in dataclasses.fields(WorkflowCheckpoint)}
    fields: Values = {
        PREVIOUS: parent,
        **{name: value for name, value in values.items() if name in names},
        "checkpoint_id": id_,
        "messages": _joined_messages(values),
        "state": _joined_state(values),
    }
    return WorkflowCheckpoint(**fields)


# --- the messages between executors ---------------------------------------------------


def _spread_messages(messages: Messages) -> Values:
    flat = [message for sent in messages.values() for message in sent]
    if _by_source(flat) == messages:  # so it is in every run of the framework
        return {MESSAGES: flat}
    return {
        MESSAGES: flat,
        SENDERS: {name: len(sent) for name, sent in messages.items()},
    }


def _joined_messages(values: Values) -> Messages:
    if SENDERS not in values:
        return _by_source(values[MESSAGES])
    waiting = iter(values[MESSAGES])
    return {
        sender: list(islice(waiting, count))
        for sender, count in values[SENDERS].items()
    }


def _by_source(flat: list[WorkflowMessage]) -> Messages:
    found: Messages = {}
    for message in flat:
        found.setdefault(message.source_id, []).append(message)
    return found


# --- the state of a workflow ----------------------------------------------------------


def _spread_state(state: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in state.items():
        if name == _EXECUTOR_STATE and _can_spread(value):
            yield from _spread_executors(value)
        else:
            yield _path(STATE, name), value


def _spread_executors(states: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for executor, state in states.items():
        if _can_spread(state):
            for name, value in state.items():
                yield _path(EXECUTORS, executor, name), value
        else:
            yield _path(EXECUTORS, executor), state


def _can_spread(value: object) -> bool:
    if type(value) is not dict or not value:
        return False
    return all(type(key) is str for key in cast("dict[object, object]", value))


def _joined_state(values: Values) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for path, value in values.items():
        kind, *names = map(_plain, path.split("/"))
        if not names or kind not in {STATE, EXECUTORS}:
            continue
        place = state
        if kind == EXECUTORS:
            names.insert(0, _EXECUTOR_STATE)
        for name in names[:-1]:
            place = place.setdefault(name, {})
        place[names[-1]] = value
    return state


def _path(*names: str) -> str:
    return "/".join(name.replace("%", "%25").replace("/", "%2F") for name in names)


def _plain(name: str) -> str:
    return name.replace("%2F", "/").replace("%25", "%")
