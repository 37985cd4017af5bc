"""What is to become of a conversation, and of the run that is paused in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from holdfast._messages.transcript import answers_of, calls_of, fields_of
from holdfast._values.records import UNSET, Unset
from holdfast.errors import Conflict

# The value of a conversation's state that is a paused run.
RUN = "paused_run"


class Resumed(msgspec.Struct, frozen=True):
    """A paused run that somebody goes on with, and the calls it waits for."""

    id: str
    calls: frozenset[str]

    def is_answered_by(self, items: Sequence[object]) -> bool:
        """Whether these items are what it was waiting for."""
        return bool(self.calls & _answered(items))


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a conversation in one checkpoint.

    ``dropped`` are the items expected at the end, which go, ``None`` for all there
    are; ``at`` is how many items there must be. Then others are ``added``; what they
    answer must be waited for by the run that they resume. ``run`` is a paused run to be
    kept, ``None`` if none shall be. ``expired`` tells which items go from the front.
    """

    dropped: Sequence[object] | None = ()
    at: int | None = None
    added: Sequence[Mapping[str, Any]] = ()
    resumes: Resumed | None = None
    run: Mapping[str, Any] | Unset | None = UNSET
    expired: Callable[[Any], bool] | None = None
    kind: str = "save"
    metadata: bytes = b""

    @property
    def only_adds(self) -> bool:
        """Whether nothing that is there has to be looked at."""
        return self.dropped == () and self.expired is None


def next_run(
    wanted: Change, open_: Sequence[str], before: Mapping[str, Any]
) -> dict[str, object]:
    """The paused run of a changed conversation, in which these calls are open."""
    _refuse_second(wanted, before)
    if isinstance(wanted.run, Unset):
        return run_after(before.get(RUN), wanted.dropped or (), wanted.added)
    if wanted.run is None:
        return {RUN: UNSET}
    # The answers to its calls are what will make it history.
    return {RUN: {**wanted.run, "calls": sorted({*wanted.run["calls"], *open_})}}


def _refuse_second(wanted: Change, before: Mapping[str, Any]) -> None:
    """Of two workers that resume a run, one can add what came of it."""
    resumed = wanted.resumes
    if resumed is None or not resumed.is_answered_by(wanted.added):
        return
    if fields_of(before.get(RUN)).get("id") != resumed.id:
        raise resumed_by_another()


def resumed_by_another() -> Conflict:
    """What a worker gets who goes on with a run behind somebody's back."""
    return Conflict(
        "this run has been resumed, or given up, by somebody else; nothing was added:"
        " look at the session's items before you go on",
        code="run_resumed",
    )


def run_after(
    run: object, dropped: Sequence[object], added: Sequence[object]
) -> dict[str, object]:
    """What becomes of a paused run when items come or go.

    Once one of its calls is answered, or taken back, it has gone on, or cannot. To
    resume what was saved would make the calls a second time.
    """
    calls = set(cast("list[str]", fields_of(run).get("calls", [])))
    taken_back = {call.id for item in dropped for call in calls_of(item)}
    return {RUN: UNSET} if calls & (_answered(added) | taken_back) else {}


def _answered(items: Sequence[object]) -> set[str]:
    """The calls that items answer, and the requests for approval of hosted tools."""
    approved = {fields_of(item).get("approval_request_id") for item in items}
    answers = {id_ for item in items for id_ in answers_of(item)}
    return answers | {id_ for id_ in approved if isinstance(id_, str)}
