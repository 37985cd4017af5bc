"""The chapters of the demo, in the order they are told."""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import holdfast
from demo import agent
from demo.agent import THREAD, Event
from demo.process import Worker
from demo.screen import Screen, Session, cut, size
from demo.shop import Shop, customer, price

ORDERS = 12
LONG_RUN_ORDERS = 125
FATAL = Event("recorded", 23, 4817, "issue_refund")
WORDS = {
    "lookup_order": "order",
    "inspect_batch": "batch",
    "issue_refund": "refund",
    "issue_credit": "credit",
    "send_email": "mail",
}


@dataclass(slots=True)
class Story:
    """The places things are kept, and what is known so far."""

    screen: Screen
    folder: str
    acknowledged: int = 0
    killed: int = 0
    processes: list[int] = field(default_factory=list)

    @property
    def path(self) -> str:
        return os.path.join(self.folder, "agents.db")

    @property
    def shop(self) -> Shop:
        return Shop(os.path.join(self.folder, "ledger.jsonl"))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="demo/run.py", description=__doc__)
    parser.add_argument("--fast", action="store_true", help="without the pauses")
    fast = parser.parse_args(arguments).fast
    story = Story(Screen(fast=fast), tempfile.mkdtemp(prefix="holdfast-demo-"))
    try:
        return tell(story)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141


def tell(story: Story) -> int:
    introduce(story)
    work_until_killed(story)
    look_at_what_is_left(story)
    go_on(story)
    with holdfast.open(story.path) as store:
        try_another_policy(story, store)
        rewind_and_undo(story, store)
        verify(story, store)
    count_bytes(story)
    return close(story)
