"""Events and states of the framework as values that a store keeps, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from google.adk.events import Event
from google.adk.sessions import State
from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

MESSAGES = "messages"
_EVENTS = TypeAdapter(list[Event])
# The prefix of value names that are keys of a state.
STATE = "state:"


def stored_event(event: Event) -> dict[str, Any]:
    """An event as a message: JSON values, without the fields that are not set."""
    fields = event.model_dump(mode="json", exclude_none=True, exclude={"actions"})
    # Most actions are empty mappings in every event.
    actions = event.actions.model_dump(
        mode="json", exclude_none=True, exclude_defaults=True
    )
    return {**fields, "actions": actions} if actions else fields


def events_text(messages: object) -> bytes:
    """Messages as JSON for `events_of`."""
    return to_json(messages, inf_nan_mode="constants")


def events_of(text: bytes) -> list[Event]:
    """The events of messages.

    They are read from JSON, because only then the model decodes bytes from text.
    """
    return _EVENTS.validate_json(text)


class Scopes(NamedTuple):
    """A change of state as values of three threads; ``temp:`` is in none of them."""

    session: dict[str, Any]
    app: dict[str, Any]
    user: dict[str, Any]

    @classmethod
    def of(cls, delta: Mapping[str, Any] | None) -> Scopes:
        """The scopes of a change, by the prefixes of its keys."""
        found = cls({}, {}, {})
        for key, value in _plain(dict(delta or {})).items():
            if key.startswith(State.APP_PREFIX):
                found.app[STATE + key.removeprefix(State.APP_PREFIX)] = value
            elif key.startswith(State.USER_PREFIX):
                found.user[STATE + key.removeprefix(State.USER_PREFIX)] = value
            elif not key.startswith(State.TEMP_PREFIX):
                found.session[STATE + key] = value
        return found


def _plain(state: dict[str, Any]) -> dict[str, Any]:
    """A state of JSON values; a value without a JSON form becomes its text.

    The framework's own stores do so too, and its events warn when they are dumped.
    """
    try:
        plain: object = to_jsonable_python(state)
    except PydanticSerializationError:
        plain = to_jsonable_python(state, serialize_unknown=True)
    return cast("dict[str, Any]", plain)


def state_of(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The state among the values of a thread, with a prefix before its keys."""
    return {
        prefix + name.removeprefix(STATE): value
        for name, value in values.items()
        if name.startswith(STATE)
    }


def merged(
    session: Mapping[str, Any], app: Mapping[str, Any], user: Mapping[str, Any]
) -> dict[str, Any]:
    """The state of a session: the values of three threads in one mapping."""
    return {
        **state_of(session),
        **state_of(app, State.APP_PREFIX),
        **state_of(user, State.USER_PREFIX),
    }
