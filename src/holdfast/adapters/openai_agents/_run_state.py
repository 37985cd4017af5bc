"""Paused runs as values: the JSON that the SDK's `RunState` writes and reads.

Classes and functions that the JSON names are never imported, looked up or called here;
agents, tools and context come from the caller.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any, TypedDict

from agents import Agent, RunState
from agents.exceptions import UserError

from holdfast._engine.cache import OpenedCheckpoint
from holdfast._engine.context import Context
from holdfast._engine.threads.drafts import read_values
from holdfast._engine.threads.load import read_listed
from holdfast._messages.transcript import fields_of, parts_of
from holdfast._values.clock import uuid7
from holdfast._values.records import ThreadRecord
from holdfast.adapters.openai_agents._changes import ConversationKey, admit
from holdfast.adapters.openai_agents._paused_run import RUN
from holdfast.errors import FormatMismatch

SDK = "openai-agents"
_CALLS = frozenset({"call_id", "callId"})


class SaveOptions(TypedDict, total=False):
    """The options of `RunState.to_json`."""

    context_serializer: Any
    strict_context: bool
    include_tracing_api_key: bool


class LoadOptions(TypedDict, total=False):
    """The options of `RunState.from_json`."""

    context_override: Any
    context_deserializer: Any
    strict_context: bool


def written(state: RunState[Any, Any], options: SaveOptions) -> dict[str, Any]:
    """A run as the value of a conversation's state."""
    snapshot = json.loads(state.to_string(**options))
    return {
        "id": uuid7(),
        "schema": snapshot.get("$schemaVersion"),
        "sdk": version(SDK),
        "agent": fields_of(snapshot.get("current_agent")).get("name"),
        "calls": sorted(_pending(state, snapshot)),
        "state": snapshot,
    }


def _pending(state: RunState[Any, Any], snapshot: Mapping[str, Any]) -> set[str]:
    """The calls the run waits for, also those of agents that are used as tools."""
    response = snapshot.get("last_processed_response")
    found = set(_called(response))
    for item in state.get_interruptions():
        raw: object = item.raw_item
        fields = fields_of(raw if isinstance(raw, dict) else vars(raw))
        found |= {fields.get("call_id"), fields.get("id")}
    return {id_ for id_ in found if isinstance(id_, str) and id_}


def _called(value: object) -> Iterator[object]:
    fields = fields_of(value)
    for name, part in fields.items():
        if name in _CALLS:
            yield part
        yield from _called(part)
    for part in parts_of(value):
        yield from _called(part)


async def find(context: Context, key: ConversationKey) -> Mapping[str, Any] | None:
    """The stored run, ``None`` if there is none."""
    await admit(context, key)
    record = await context.find_thread(key.thread)
    if record is None or record.head is None:
        return None

    async def read(context: Context, record: ThreadRecord) -> Mapping[str, Any] | None:
        assert record.head is not None
        known = OpenedCheckpoint.of(record.head)
        return fields_of((await read_values(context, known, (RUN,))).get(RUN)) or None

    return await read_listed(context, record, read)


async def read(
    id_: str, run: Mapping[str, Any], agent: Agent[Any], options: LoadOptions
) -> RunState[Any, Any]:
    """The run as an object of the SDK; `FormatMismatch` if the SDK cannot read it."""
    try:
        return await RunState.from_json(agent, run["state"], **options)
    except UserError as error:
        raise FormatMismatch(_advice(id_, run, error), code="run_unreadable") from error


def _advice(id_: str, run: Mapping[str, Any], error: UserError) -> str:
    written_by, here = run.get("sdk"), version(SDK)
    origin = f"the run of session {id_!r}, saved by {SDK} {written_by}"
    if "schema version" in str(error).lower():
        return (
            f"{origin} with schema {run.get('schema')}, cannot be read by {SDK} {here};"
            f" install {SDK}>={written_by} to resume it, or clear_run() to give it up"
        )
    return (
        f"{origin}, cannot be read: {error}; pass the agent that it began with, with"
        f" the agents and tools it had (it is at {run.get('agent')!r})"
    )
