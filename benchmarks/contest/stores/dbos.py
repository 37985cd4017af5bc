"""A DBOS workflow that never ends, with a step for every turn, on SQLite."""

from __future__ import annotations

import itertools
import queue
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from benchmarks.contest.workload import Message, Turn

# Named by a string, because DBOS is not there when types are checked.
dbos: Any = import_module("dbos")

ID = "chat"
MESSAGES_A_STEP = 2


class StepsChat:
    """A step returns the messages of its turn, and DBOS records what it returned."""

    def __init__(self, path: str) -> None:
        self._url = f"sqlite:///{path}"
        self._client: Any = None
        self._running: Workflow | None = None

    def save(self, turn: Turn) -> None:
        """Let the next step return a turn, and wait until that is recorded."""
        if self._running is None:
            self._running = Workflow(self._url)
        self._running.step(turn.added, len(turn.messages) // MESSAGES_A_STEP)

    def load(self) -> Sequence[object]:
        """What all steps returned."""
        return self._messages(self._steps())

    def last(self, count: int) -> Sequence[object]:
        """What the last steps returned: first their number, then those."""
        steps = -(-count // MESSAGES_A_STEP)
        before = max(0, len(self._steps(load_output=False)) - steps)
        return self._messages(self._steps(offset=before))[-count:]

    def close(self) -> None:
        """End the threads of DBOS; the workflow could be recovered."""
        if self._client is not None:
            self._client.destroy()
        if self._running is not None:
            self._running.close()

    def _steps(self, **options: object) -> list[dict[str, Any]]:
        if self._client is None:
            self._client = dbos.DBOSClient(system_database_url=self._url)
        found: list[dict[str, Any]] = self._client.list_workflow_steps(ID, **options)
        return found

    @staticmethod
    def _messages(steps: list[dict[str, Any]]) -> list[object]:
        return [message for step in steps for message in step["output"]]


class Workflow:
    """The workflow, started or recovered; steps that are recorded do not run again."""

    def __init__(self, url: str) -> None:
        self._turns: queue.Queue[list[Message]] = queue.Queue()
        self._recorded: queue.Queue[int] = queue.Queue()
        dbos.DBOS(
            config={
                "name": "holdfast-bench",
                "system_database_url": url,
                "run_admin_server": False,
                "log_level": "ERROR",
            }
        )

        def answer() -> list[Message]:
            return self._turns.get()

        step = dbos.DBOS.step(name="answer")(answer)

        def chat() -> None:
            for number in itertools.count(1):
                step()
                self._recorded.put(number)

        workflow = dbos.DBOS.workflow(name="chat")(chat)
        dbos.DBOS.launch()
        with dbos.SetWorkflowID(ID):
            dbos.DBOS.start_workflow(workflow)

    def step(self, added: list[Message], number: int) -> None:
        """Hand a turn to the step of this number, after those that are replayed."""
        self._turns.put(added)
        while self._recorded.get() < number:
            pass

    def close(self) -> None:
        """Leave the workflow as a crash would, but for the threads."""
        dbos.DBOS.destroy(destroy_registry=True)
