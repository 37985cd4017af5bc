"""Chapter 9: the bytes, of this run and of a long one."""

from __future__ import annotations

import glob
import json
import os
from dataclasses import dataclass

import holdfast
from demo import agent
from demo.agent import THREAD
from demo.screen import size
from demo.shop import Shop
from demo.stage import Stage

LONG_RUN_ORDERS = 125


@dataclass(frozen=True, slots=True)
class Cost:
    """Bytes of one store: its conversation, its file, and what others would write."""

    steps: int
    conversation: int
    file: int
    whole_states: int

    @property
    def ratio(self) -> float:
        return self.whole_states / self.file


def count(stage: Stage) -> None:
    screen = stage.screen
    screen.heading(9, "What it costs to keep every step")
    screen.say(
        "Saving the whole state at every step costs the square of the length. Holdfast "
        "saves what is new. Here is the run above, with its fork and its journal "
        "(which keeps every tool result a second time), and the same agent with "
        f"{LONG_RUN_ORDERS} orders, run just now:"
    )
    costs = [measure(stage.path), measure(long_run(stage))]
    rows = {
        "steps saved": [f"{cost.steps}" for cost in costs],
        "the conversation, raw JSON": [size(cost.conversation) for cost in costs],
        "Holdfast: all of it on disk": [size(cost.file) for cost in costs],
        "the whole state at every step": [size(cost.whole_states) for cost in costs],
    }
    for name, cells in rows.items():
        screen.row(name, cells)
    screen.rule()
    screen.row("smaller by", [f"{cost.ratio:.0f}x" for cost in costs], "bold")
    screen.gap()
    short, long = costs
    steps, bytes_ = long.steps / short.steps, long.file / short.file
    whole = long.whole_states / short.whole_states
    screen.claim(
        f"{steps:.0f} times the steps cost {bytes_:.0f} times the bytes; "
        f"as whole states {whole:.0f} times",
        holds=bytes_ <= 1.2 * steps < whole,
    )


def measure(path: str) -> Cost:
    with holdfast.open(path) as store:
        facts = store.stats()
        messages = store.thread(THREAD).load()["messages"]
    return Cost(
        steps=facts.checkpoints,
        conversation=len(json.dumps(messages, separators=(",", ":"))),
        file=sum(os.path.getsize(file) for file in glob.glob(f"{path}*")),
        whole_states=facts.logical_bytes,
    )


def long_run(stage: Stage) -> str:
    """The path of a store in which the agent has settled many orders."""
    path = os.path.join(stage.folder, "long-run.db")
    shop = Shop(os.path.join(stage.folder, "long-run.jsonl"))
    with holdfast.open(path) as store:
        thread = store.thread(THREAD)
        thread.save(agent.opening(LONG_RUN_ORDERS))
        for _ in agent.work(thread, shop):
            pass
    return path
