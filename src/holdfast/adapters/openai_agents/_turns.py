"""The open turns of runs, with the ids of the checkpoints that will have their calls.

The SDK saves a call together with its result, at the end of the turn. Until then the
turn has the id that this checkpoint will get. If the turn is never saved, no checkpoint
gets the id, and the effects of its calls were left behind.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

from holdfast.operations.transcripts import answers_of, calls_of
from holdfast.operations.values import uuid7


class Turn:
    """A turn with calls that are not saved yet."""

    def __init__(self, run: object) -> None:
        self.id = uuid7()
        self.calls: set[str] = set()
        self._run = weakref.ref(run)

    @property
    def run(self) -> object | None:
        """The object that identifies the run, ``None`` when the run is gone."""
        return self._run()


class OpenTurns:
    """The open turns of a session, at most one of each run."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []

    def join(self, run: object, call: str) -> str:
        """The id of the checkpoint that will have a call of a run."""
        self._turns = [turn for turn in self._turns if turn.run is not None]
        turn = self._of_run(run)
        if turn is None:
            turn = Turn(run)
            self._turns.append(turn)
        turn.calls.add(call)
        return turn.id

    def find(self, items: Sequence[object], run: object | None) -> Turn | None:
        """The turn that items are the end of.

        The items have the calls of the turn, except the calls of an agent that is
        itself a tool; such a turn is found by its run, which the SDK gives since 0.20.
        """
        made = {call.id for item in items for call in calls_of(item)}
        made |= {id_ for item in items for id_ in answers_of(item)}
        if not made:
            return None
        for turn in self._turns:
            if turn.calls & made:
                return turn
        if run is None:
            return self._turns[0] if len(self._turns) == 1 else None
        return self._of_run(run)

    def end(self, turn: Turn | None) -> None:
        """Close a saved turn: later calls of its run belong to the next turn."""
        self._turns = [other for other in self._turns if other is not turn]

    def _of_run(self, run: object) -> Turn | None:
        return next((turn for turn in self._turns if turn.run is run), None)
