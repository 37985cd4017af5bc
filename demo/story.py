"""The demo from beginning to end, and what its chapters share."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence

import holdfast
from demo import agent, cost, crash, files, past, tool_crash
from demo.screen import Screen, Session
from demo.stage import Stage

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main(arguments: Sequence[str]) -> int:
    """Tell the story; 0 if everything it claims was found to be so."""
    parser = argparse.ArgumentParser(prog="demo/run.py", description="Watch Holdfast.")
    parser.add_argument("--fast", action="store_true", help="without the pauses")
    fast = parser.parse_args(arguments).fast
    stage = Stage(Screen(fast=fast), tempfile.mkdtemp(prefix="holdfast-demo-"))
    try:
        tell(stage)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    return 1 if stage.screen.broken else 0


def tell(stage: Stage) -> None:
    introduce(stage)
    crash.work_until_killed(stage)
    crash.look_at_what_is_left(stage)
    crash.go_on(stage)
    tool_crash.tell(stage)
    with holdfast.open(stage.path) as store:
        past.fork(stage, store)
        past.rewind(stage, store)
        files.restore(stage, store)
        past.verify(stage, store)
    cost.count(stage)
    end(stage)


def introduce(stage: Stage) -> None:
    screen = stage.screen
    screen.title("Holdfast demo", "an agent is killed, and nothing is lost")
    screen.say(
        "A kettle is recalled, and an agent settles twelve orders: look up, inspect, "
        "pay, write to the customer. That is 48 tool calls, and some of them move "
        "money. The agent follows a script, without a model or a network; the "
        "processes, the kill and the file on disk are real."
    )
    session = Session(screen, holdfast=holdfast, opening=agent.opening(stage.orders))
    os.chdir(stage.folder)
    store = session.run("store = holdfast.open('agents.db')")
    session.run(f"thread = store.thread({agent.THREAD!r})")
    session.run("thread.save(opening).step")
    store.close()
    screen.pause(2)


def end(stage: Stage) -> None:
    screen = stage.screen
    screen.gap()
    screen.verdict()
    screen.gap()
    screen.say("The store stays where it is. Look around in it:")
    for command in (
        f"log --graph {agent.THREAD}",
        f"diff {agent.THREAD} what-if",
        f"show {agent.THREAD}@label:closed-4817",
    ):
        screen.code(f"$ {holdfast_program()} -C {stage.folder} {command}")
    screen.gap()
    screen.say(f"Or with {_shown(sys.executable)}:")
    screen.code(">>> import holdfast")
    screen.code(f">>> store = holdfast.open({stage.path!r})")
    listing = f"store.thread({agent.THREAD!r}).history(limit=9)"
    screen.code(f">>> [(c.step, c.label) for c in {listing}]")
    screen.gap()


def holdfast_program() -> str:
    """How to start the command line from the folder of the project."""
    installed = os.path.join(os.path.dirname(sys.executable), "holdfast")
    if not os.path.exists(installed):
        return f"{_shown(sys.executable)} -m holdfast"
    return _shown(installed)


def _shown(program: str) -> str:
    """A program as it is started from the folder of the project."""
    inside = os.path.relpath(program, ROOT)
    return program if inside.startswith(os.pardir) else inside
