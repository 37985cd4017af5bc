"""Chapters 1 to 3: the agent works, is killed, and a new process goes on."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterable

import holdfast
from demo import agent
from demo.agent import THREAD, Event
from demo.process import Worker
from demo.screen import Session, line_of
from demo.shop import customer, price
from demo.stage import Stage

# The refund is paid and recorded; the step that would say so is not saved yet.
FATAL = Event("recorded", 23, 4817, "issue_refund")
FATAL_KEY = f"{FATAL.order}/{FATAL.tool}"
WORDS = {
    "lookup_order": "order",
    "inspect_batch": "batch",
    "issue_refund": "refund",
    "issue_credit": "credit",
    "send_email": "mail",
}


def work_until_killed(stage: Stage) -> None:
    screen = stage.screen
    screen.heading(1, "The agent works and saves every step")
    screen.say(
        "A word appears when the effect of a tool is recorded in the thread's journal, "
        "a ✓ when the step is saved. Both are durable before the agent hears of it."
    )
    screen.code(line_of(agent.work, "thread.record("), "the effect, recorded once")
    screen.code(line_of(agent.work, "thread.extend("), "the step, saved: ✓")
    screen.gap()
    screen.pause(1)
    with Worker(stage.path, stage.shop.ledger) as worker:
        stage.processes.append(worker.pid)
        for event in worker.events():
            follow(stage, event)
            if event == FATAL:
                break
        status = worker.kill()
    screen.write(f"   {screen.style('✖ kill -9', 'bad')}\n")
    screen.gap()
    screen.say(
        f"Killed at the worst moment: order {FATAL.order} is paid, but the step that "
        "says so is not saved. An agent that only saves its steps would pay again."
    )
    screen.claim(
        f"process {worker.pid} ended by signal {-status}",
        holds=status == -signal.SIGKILL,
    )
    screen.pause(1.8)


def follow(stage: Stage, event: Event) -> None:
    """Show the agent's progress: an order is a line, a check mark a saved step."""
    screen = stage.screen
    if event.kind == "saved":
        stage.acknowledged = event.step
        screen.write(screen.style(" ✓", "good"))
        if event.tool == "send_email":
            screen.write(screen.style(f"   step {event.step:2}", "dim") + "\n")
    elif event.tool:
        if event.tool == "lookup_order" or event.kind == "found":
            screen.write(f"   {event.order}  {customer(event.order):16}")
        screen.write(f"  {words(event)}")
        if event.kind == "found":
            screen.write(f" {screen.style('found in the journal', 'good')}")
            screen.pause(1)
    screen.pause(0.04)


def words(event: Event) -> str:
    word = WORDS[event.tool]
    pays = event.tool in {"issue_refund", "issue_credit"}
    return f"{word} {price(event.order):6.2f}" if pays else word


def look_at_what_is_left(stage: Stage) -> None:
    screen = stage.screen
    screen.heading(2, "What the dead process left")
    with holdfast.open(stage.path, read_only=True) as store:
        session = Session(screen, thread=store.thread(THREAD))
        step = session.run("thread.step")
        session.run("len(thread.load()['messages'])")
        recorded = session.run(f"thread.recorded({FATAL_KEY!r})['receipt']")
        state = json.dumps(store.thread(THREAD).load())
    paid = stage.shop.effects()[-1].receipt
    screen.gap()
    screen.claim(
        f"step {step}, the last one the agent was told is saved, is the head",
        holds=step == stage.acknowledged,
    )
    screen.claim(
        f"no saved step knows of payment {paid}, but the journal does",
        holds=paid not in state and paid == recorded,
    )
    screen.pause(2.2)


def go_on(stage: Stage) -> None:
    screen = stage.screen
    screen.heading(3, "A new process goes on exactly there")
    screen.code(line_of(agent.work, "thread.load("), "where was I?")
    screen.code(line_of(agent.work, "thread.recorded("), "did I do this already?")
    screen.gap()
    screen.pause(1)
    with Worker(stage.path, stage.shop.ledger) as worker:
        stage.processes.append(worker.pid)
        began = follow_to_the_end(stage, worker.events())
    screen.gap()
    screen.claim(
        f"process {worker.pid} began at step {began}", holds=began == FATAL.step
    )
    prove_once(stage)
    screen.pause(2.2)


def follow_to_the_end(stage: Stage, events: Iterable[Event]) -> int:
    """Show a run; the step it began at."""
    began = -1
    for event in events:
        began = event.step if event.kind == "began" else began
        follow(stage, event)
    return began


def prove_once(stage: Stage) -> None:
    """Hold what was saved against the ledger, which knows nothing of Holdfast."""
    screen = stage.screen
    effects = stage.shop.effects()
    calls = {effect.key: effect for effect in effects}
    share = Counter(effect.process for effect in effects)
    first, second = stage.processes
    screen.claim(
        f"the tools' own ledger: {len(effects)} effects, {len(calls)} distinct calls "
        f"({share[first]} by {first}, {share[second]} by {second})",
        holds=len(effects) == len(calls) == stage.orders * agent.TURNS
        and share[first] + share[second] == len(effects),
    )
    with holdfast.open(stage.path, read_only=True) as store:
        closed = store.thread(THREAD).load("label:closed-4817")["closed"][-1]
    paid = calls[FATAL_KEY]
    screen.claim(
        f"{second} closed order {FATAL.order} with the payment {first} made: "
        f"{paid.receipt}",
        holds=paid.process == first and closed["receipt"] == paid.receipt,
    )
