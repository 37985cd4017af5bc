"""The paused run of a conversation: how changes affect it, and its JSON.

Classes and functions that the JSON names are never imported, looked up or called here;
agents, tools and context come from the caller.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any, TypedDict, cast

import msgspec
from agents import Agent, RunState
from agents.exceptions import UserError

from holdfast.backends import UNSET, Unset
from holdfast.errors import Conflict, FormatMismatch
from holdfast.operations.transcripts import (
    PAUSED_RUN,
    Summary,
    answers_of,
    calls_of,
    fields_of,
    parts_of,
)
from holdfast.operations.values import uuid7

SDK = "openai-agents"
_CALLS = frozenset({"call_id", "callId"})
# The kind of a checkpoint in which a summary replaces items.
COMPACTION = "compaction"


class ResumedRun(msgspec.Struct, frozen=True):
    """A paused run that this worker resumed, and the calls it waits for.

    ``asked`` are those that need an approval, ``approved`` those that had one already
    when the run was stored.
    """

    id: str
    calls: frozenset[str]
    asked: frozenset[str] = frozenset()
    approved: frozenset[str] = frozenset()

    @classmethod
    def of(cls, run: Mapping[str, Any], approved: set[str]) -> ResumedRun:
        """A stored run."""
        calls = frozenset(run["calls"])
        asked = frozenset(run.get("asked", calls))
        return cls(run["id"], calls, asked, asked & approved)

    def is_answered_by(self, items: Sequence[object]) -> bool:
        """True if items answer a call that the run waits for."""
        return bool(self.calls & answered(items))


class SessionChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change of a conversation in one checkpoint.

    ``dropped`` are the items to remove from the end, where they are expected, or
    ``None`` to remove all; ``at`` is the expected number of items. Then items are
    ``added``. If these answer calls of the run that the session ``resumes``, that run
    must still be stored. ``run`` is a paused run to store, ``None`` to remove the
    stored one. ``expired`` selects items to remove from the front. ``id`` is that of
    the new checkpoint, if the change has calls that were made for it. ``summary``
    describes the items that a summary replaces, if they are known.
    """

    dropped: Sequence[object] | None = ()
    at: int | None = None
    added: Sequence[Mapping[str, Any]] = ()
    resumes: ResumedRun | None = None
    run: Mapping[str, Any] | Unset | None = UNSET
    expired: Callable[[Any], bool] | None = None
    kind: str = "save"
    metadata: bytes = b""
    id: str | None = None
    summary: Summary | Unset | None = UNSET

    @property
    def only_adds(self) -> bool:
        """True if the change does not depend on the stored items."""
        return self.dropped == () and self.expired is None


def next_run(
    wanted: SessionChange, open_: Sequence[str], before: Mapping[str, Any]
) -> dict[str, object]:
    """The paused run after a change; ``open_`` are the calls without an answer."""
    _refuse_second(wanted, before)
    if isinstance(wanted.run, Unset):
        return run_after(before.get(PAUSED_RUN), wanted.dropped or (), wanted.added)
    if wanted.run is None:
        return {PAUSED_RUN: UNSET}
    # The answer to one of these calls will remove the run.
    calls = sorted({*wanted.run["calls"], *open_})
    return {PAUSED_RUN: {**wanted.run, "calls": calls, "open": list(open_)}}


def is_unanswered(run: Mapping[str, Any], open_: Sequence[str]) -> bool:
    """True if a call that was open when the run was stored still is."""
    return not run.get("open") or not set(open_).isdisjoint(run["open"])


def without_answered(
    wanted: SessionChange, run: Mapping[str, Any], open_: Sequence[str]
) -> Sequence[Mapping[str, Any]]:
    """The items to add without second answers to calls of the resumed run.

    A recorder may have answered one of them while the run was paused.
    """
    if wanted.resumes is None or run.get("id") != wanted.resumes.id:
        return wanted.added
    answered = set(run.get("open", ())) - set(open_)
    return [item for item in wanted.added if answered.isdisjoint(answers_of(item))]


def _refuse_second(wanted: SessionChange, before: Mapping[str, Any]) -> None:
    """`Conflict` if another worker resumed the same run and added its items first."""
    resumed = wanted.resumes
    if resumed is None or not resumed.is_answered_by(wanted.added):
        return
    if fields_of(before.get(PAUSED_RUN)).get("id") != resumed.id:
        raise resumed_by_another()


def resumed_by_another() -> Conflict:
    """The error of a worker that resumes a run which is not stored any more."""
    return Conflict(
        "this run has been resumed, or given up, by another worker; nothing was added:"
        " look at the session's items before you go on",
        code="run_resumed",
    )


def run_after(
    run: object, dropped: Sequence[object], added: Sequence[object]
) -> dict[str, object]:
    """The paused run after items were dropped and added; `UNSET` removes it.

    The run is removed when one of its calls is answered, because it was continued, or
    dropped, because it cannot be continued. Resuming it would make the calls a second
    time.
    """
    calls = set(cast("list[str]", fields_of(run).get("calls", [])))
    taken_back = {call.id for item in dropped for call in calls_of(item)}
    return {PAUSED_RUN: UNSET} if calls & (answered(added) | taken_back) else {}


def answered(items: Sequence[object]) -> set[str]:
    """The ids of the calls and of the approval requests that items answer."""
    approved = {fields_of(item).get("approval_request_id") for item in items}
    answers = {id_ for item in items for id_ in answers_of(item)}
    return answers | {id_ for id_ in approved if isinstance(id_, str)}


# --- the JSON of the SDK --------------------------------------------------------------


class SaveRunOptions(TypedDict, total=False):
    """The options of `RunState.to_json`."""

    context_serializer: Any
    strict_context: bool
    include_tracing_api_key: bool


class LoadRunOptions(TypedDict, total=False):
    """The options of `RunState.from_json`."""

    context_override: Any
    context_deserializer: Any
    strict_context: bool


def dump_run(state: RunState[Any, Any], options: SaveRunOptions) -> dict[str, Any]:
    """A run as the value of a conversation's state."""
    snapshot = json.loads(state.to_string(**options))
    return {
        "id": uuid7(),
        "schema": snapshot.get("$schemaVersion"),
        "sdk": version(SDK),
        "agent": fields_of(snapshot.get("current_agent")).get("name"),
        "calls": sorted(_pending(state, snapshot)),
        "asked": sorted(_asked(state)),
        "state": snapshot,
    }


def _pending(state: RunState[Any, Any], snapshot: Mapping[str, Any]) -> set[str]:
    """The calls the run waits for, also those of agents that are used as tools."""
    response = snapshot.get("last_processed_response")
    called = {id_ for id_ in _called(response) if isinstance(id_, str) and id_}
    return called | _asked(state)


def _asked(state: RunState[Any, Any]) -> set[str]:
    """The calls that need an approval."""
    found: set[object] = set()
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


async def load_run(
    id_: str, run: Mapping[str, Any], agent: Agent[Any], options: LoadRunOptions
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
