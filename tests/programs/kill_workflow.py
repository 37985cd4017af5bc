"""A workflow a -> b -> c, killed inside of b, and resumed in a new process.

usage: kill_workflow.py ADDRESS OPTIONS TIMES

OPTIONS are JSON. As many processes as TIMES are killed inside of b, each resuming what
the one before it has left; the last process ends the run. For each process a line of
JSON: the executors that ran in it, and at the end the output.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial

from agent_framework import Executor, WorkflowBuilder, WorkflowContext, handler

import holdfast
from holdfast.adapters.agent_framework import HoldfastCheckpointStorage
from holdfast.testing.trials.children import Child
from support.report import report

Tell = Callable[[object], None]


class Step(Executor):
    def __init__(self, name: str, tell: Tell, *, dies: bool) -> None:
        super().__init__(id=name)
        self.tell, self.dies = tell, dies

    @handler
    async def run(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        self.tell(self.id)
        if self.dies and self.id == "b":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.id == "c":
            await ctx.yield_output(number + 1)
        else:
            await ctx.send_message(number + 1)


async def work(address: str, options: str, dies: bool, tell: Tell) -> None:
    with holdfast.open(address, **json.loads(options)) as store:
        storage = HoldfastCheckpointStorage(store)
        a, b, c = (Step(name, tell, dies=dies) for name in "abc")
        builder = WorkflowBuilder(
            start_executor=a,
            name="wf",
            checkpoint_storage=storage,
            output_from="all",
        )
        workflow = builder.add_edge(a, b).add_edge(b, c).build()
        latest = await storage.get_latest(workflow_name="wf")
        if latest is None:
            result = await workflow.run(1)
        else:
            result = await workflow.run(checkpoint_id=latest.checkpoint_id)
        tell(result.get_outputs())


def main(address: str, options: str, times: int) -> None:
    for dies in [True] * times + [False]:
        working = partial(work, address, options, dies)
        child = Child(lambda tell, working=working: asyncio.run(working(tell)))
        report(child.wait())
        assert child.was_killed == dies


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
