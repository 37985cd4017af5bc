"""A change of a conversation, and what it means for the run that is paused there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from holdfast._messages.transcript import answers_of, calls_of, fields_of
from holdfast._values.records import UNSET, Unset
from holdfast.errors import Conflict

# The value of a conversation's state that is a paused run.
RUN = "paused_run"


class ResumedRun(msgspec.Struct, frozen=True):
    """A paused run that this worker resumed, and the calls it waits for."""

    id: str
    calls: frozenset[str]

    def is_answered_by(self, items: Sequence[object]) -> bool:
        """Whether items answer a call that the run waits for."""
        return bool(self.calls & _answered(items))


class SessionChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change of a conversation in one checkpoint.

    ``dropped`` are the items to remove from the end, where they are expected, or
    ``None`` to remove all; ``at`` is the expected number of items. Then items are
    ``added``. If these answer calls of the run that the session ``resumes``, that run
    must still be stored. ``run`` is a paused run to store, ``None`` to remove the
    stored one. ``expired`` selects items to remove from the front.
    """

    dropped: Sequence[object] | None = ()
    at: int | None = None
    added: Sequence[Mapping[str, Any]] = ()
    resumes: ResumedRun | None = None
    run: Mapping[str, Any] | Unset | None = UNSET
    expired: Callable[[Any], bool] | None = None
    kind: str = "save"
    metadata: bytes = b""

    @property
    def only_adds(self) -> bool:
        """Whether the change does not depend on the stored items."""
        return self.dropped == () and self.expired is None


def next_run(
    wanted: SessionChange, open_: Sequence[str], before: Mapping[str, Any]
) -> dict[str, object]:
    """The paused run after a change; ``open_`` are the calls without an answer."""
    _refuse_second(wanted, before)
    if isinstance(wanted.run, Unset):
        return run_after(before.get(RUN), wanted.dropped or (), wanted.added)
    if wanted.run is None:
        return {RUN: UNSET}
    # The answer to one of these calls will remove the run.
    return {RUN: {**wanted.run, "calls": sorted({*wanted.run["calls"], *open_})}}


def _refuse_second(wanted: SessionChange, before: Mapping[str, Any]) -> None:
    """`Conflict` if another worker resumed the same run and added its items first."""
    resumed = wanted.resumes
    if resumed is None or not resumed.is_answered_by(wanted.added):
        return
    if fields_of(before.get(RUN)).get("id") != resumed.id:
        raise resumed_by_another()


def resumed_by_another() -> Conflict:
    """The error of a worker that resumes a run which is not stored any more."""
    return Conflict(
        "this run has been resumed, or given up, by somebody else; nothing was added:"
        " look at the session's items before you go on",
        code="run_resumed",
    )


def run_after(
    run: object, dropped: Sequence[object], added: Sequence[object]
) -> dict[str, object]:
    """The paused run after items were dropped and added; `UNSET` removes it.

    It is removed when one of its calls is answered or dropped: then it was continued,
    or cannot be. Resuming it once more would make the calls a second time.
    """
    calls = set(cast("list[str]", fields_of(run).get("calls", [])))
    taken_back = {call.id for item in dropped for call in calls_of(item)}
    return {RUN: UNSET} if calls & (_answered(added) | taken_back) else {}


def _answered(items: Sequence[object]) -> set[str]:
    """The ids of the calls and of the approval requests that items answer."""
    approved = {fields_of(item).get("approval_request_id") for item in items}
    answers = {id_ for item in items for id_ in answers_of(item)}
    return answers | {id_ for id_ in approved if isinstance(id_, str)}
