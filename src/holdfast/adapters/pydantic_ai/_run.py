"""A durable run: the steps it has made, and the record of the next one.

The steps are in the state of a thread and not in its journal, so that a run continues
from the checkpoint it was rewound to or forked at.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, cast

from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter

from holdfast import AsyncStore
from holdfast.adapters.pydantic_ai._entries import MESSAGES
from holdfast.adapters.pydantic_ai._names import RUN, thread_name
from holdfast.backends import Checkpoint
from holdfast.errors import Conflict, NotFound
from holdfast.operations.stores import settled

STEPS: Final = "steps"


class Step(NamedTuple):
    """The n-th use of a name in a run, because names repeat."""

    name: str
    nth: int


class DurableRun:
    """A run in this process; the steps of other processes are read when it opens.

    ``id`` is the id that the caller gave.
    """

    def __init__(self, store: AsyncStore, id_: str) -> None:
        self.id = id_
        self.store = store
        self.thread = thread_name(RUN, id_)
        self.head: Checkpoint | None = None
        self._results: dict[Step, object] = {}
        self._uses: Counter[str] = Counter()
        self._agents = 0
        self._stored = 0  # the number of messages
        self._heard: list[ModelMessage] = []
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Read the steps that were made before."""
        thread = self.store.thread(self.thread)
        self.head = await thread.head
        if self.head is None:
            return
        try:
            state = await thread.load(self.head)
        except NotFound as gone:  # removed or rewound since
            raise self._moved() from gone
        messages: list[object] = state.get(MESSAGES, [])
        self._stored = len(messages)
        for made in state.get(STEPS, ()):
            result = messages[made["message"]] if "message" in made else made["result"]
            self._results[Step(made["name"], made["nth"])] = result

    def next_agent(self) -> str:
        """The id of the next run of an agent in this one; a resumed run repeats it."""
        self._agents += 1
        return self.id if self._agents == 1 else f"{self.id}:{self._agents}"

    async def started_at(self, agent_run: str) -> datetime:
        """The time when a run of an agent first began; its timeout starts there."""
        step = self.next_step(f"{agent_run}__start")
        if not self.is_made(step):
            now = datetime.now(UTC).isoformat()
            await self.record(step, now, (), kind="step")
        return datetime.fromisoformat(str(self.result(step)))

    def next_step(self, name: str) -> Step:
        """The next use of a name."""
        self._uses[name] += 1
        return Step(name, self._uses[name] - 1)

    def is_made(self, step: Step) -> bool:
        """True if a step was made before."""
        return step in self._results

    def result(self, step: Step) -> object:
        """The recorded result of a step."""
        return self._results[step]

    def new_messages(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """The messages of a request that no earlier request had.

        The answer to the last request is left out, because its step has it.
        """
        before, self._heard = self._heard, list(messages)
        if self._heard[: len(before)] != before:  # the history was rewritten
            return self._heard[-1:]
        new = self._heard[len(before) :]
        return new[1:] if before and new and new[0].kind == "response" else new

    async def record(
        self, step: Step, result: object, asked: Sequence[ModelMessage], *, kind: str
    ) -> None:
        """Save the result of a step, durable when this returns."""
        messages = ModelMessagesTypeAdapter.dump_python(list(asked), mode="json")
        made: dict[str, Any] = {"name": step.name, "nth": step.nth}
        async with self._turn:
            if _is_answer(result):
                # The answer of a model is one of the messages, so it is stored only
                # there.
                messages.append(result)
                made["message"] = self._stored + len(messages) - 1
            else:
                made["result"] = result
            lists = {STEPS: [made], **({MESSAGES: messages} if messages else {})}
            await settled(self._save(lists, kind))
            self._stored += len(messages)
        self._results[step] = result

    async def _save(self, lists: Mapping[str, list[Any]], kind: str) -> None:
        thread = self.store.thread(self.thread, kind=RUN)
        try:
            self.head = await thread.amend(lists=lists, expect=self.head, kind=kind)
        except Conflict as conflict:
            raise self._moved() from conflict

    def _moved(self) -> Conflict:
        return Conflict(
            f"run {self.id!r} was continued, rewound or deleted meanwhile; let only one"
            " worker make a run, and begin it again to go on from where it is",
            code="run_moved",
            thread=self.thread,
            expected=self.head.id if self.head else None,
        )


def _is_answer(result: object) -> bool:
    """True if the result of a step is the answer of a model."""
    is_mapping = isinstance(result, dict)
    return is_mapping and cast("dict[str, Any]", result).get("kind") == "response"


# The run around the calling code; none inside of a step, which is recorded as one.
running: ContextVar[DurableRun | None] = ContextVar("holdfast_run", default=None)
